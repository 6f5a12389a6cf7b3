-- Makes keys locked by `take_delivered_keys.sql` those of a delivery by the old broker.
UPDATE delivery_dedupkey AS known
SET delivery_id = 0, seen_at = greatest(known.seen_at, delivered.seen_at)
FROM unnest(%(subscription)s::bigint[], %(key)s::bytea[], %(seen_at)s::timestamptz[])
    AS delivered (subscription_id, key, seen_at)
WHERE known.subscription_id = delivered.subscription_id AND known.key = delivered.key
