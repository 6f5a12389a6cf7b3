-- Deletes the oldest idempotency keys past their 24 hours, up to a limit; returns their number.
-- Skips a key in use again by a publisher. Leans on idempotency_key_by_time.
WITH forgotten AS (
    DELETE FROM delivery_idempotencykey
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM delivery_idempotencykey
        WHERE created_at < now() - interval '24 hours'
        ORDER BY created_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) FROM forgotten
