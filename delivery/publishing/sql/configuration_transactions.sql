-- The oldest transaction under way, and the committed changes of the configuration from this
-- transaction on.
SELECT snapshot.oldest AS horizon, ARRAY(
    SELECT id FROM subscriptions_configurationtransaction WHERE id >= snapshot.oldest ORDER BY id
) AS seen
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest) AS snapshot
