-- Deletes configuration transactions no longer cached by any process (see `delivery.ingest.cache`);
-- returns their number.
WITH forgotten AS (
    DELETE FROM subscriptions_configurationtransaction
    WHERE changed_at < now() - interval '1 hour'
    RETURNING id
)
SELECT count(*) FROM forgotten
