-- Takes an idempotency key unless it was used within 24 hours; no row means that it was.
-- Waits for a transaction that is taking the same key.
INSERT INTO delivery_idempotencykey (publisher_id, key, digest, deliveries, created_at)
VALUES (%(publisher)s, %(key)s, %(digest)s, 0, now())
ON CONFLICT (publisher_id, key) DO UPDATE
SET digest = EXCLUDED.digest, message_id = NULL, deliveries = 0, created_at = now()
WHERE delivery_idempotencykey.created_at < now() - interval '24 hours'
RETURNING key
