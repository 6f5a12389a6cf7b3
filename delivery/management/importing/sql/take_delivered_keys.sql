-- Takes keys of messages delivered by the old broker, and returns those known before, with the
-- delivery holding each. A known key is locked, and stays with the delivery. In publishing's order
-- (`take_dedup_keys.sql`), so no two transactions deadlock.
WITH taken AS (
    INSERT INTO delivery_dedupkey AS known (subscription_id, key, delivery_id, seen_at)
    SELECT DISTINCT ON (subscription_id, key) subscription_id, key, 0, seen_at
    FROM unnest(%(subscription)s::bigint[], %(key)s::bytea[], %(seen_at)s::timestamptz[])
        AS delivered (subscription_id, key, seen_at)
    ORDER BY subscription_id, key, seen_at DESC
    ON CONFLICT (subscription_id, key) DO UPDATE SET delivery_id = known.delivery_id
    RETURNING subscription_id, key, delivery_id, xmax = 0 AS is_new
)
SELECT subscription_id, key, delivery_id FROM taken WHERE NOT is_new
