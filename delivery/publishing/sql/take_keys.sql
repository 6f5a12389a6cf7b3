-- Takes the idempotency keys not used within 24 hours, and returns them. Waits for a transaction
-- taking any of them; in the order of the keys, so two batches never deadlock.
INSERT INTO delivery_idempotencykey (publisher_id, key, digest, deliveries, created_at)
SELECT %(publisher)s, key, digest, 0, now()
FROM unnest(%(key)s::text[], %(digest)s::bytea[]) AS wanted (key, digest)
ORDER BY key
ON CONFLICT (publisher_id, key) DO UPDATE
SET digest = EXCLUDED.digest, message_id = NULL, deliveries = 0, created_at = now()
WHERE delivery_idempotencykey.created_at < now() - interval '24 hours'
RETURNING key
