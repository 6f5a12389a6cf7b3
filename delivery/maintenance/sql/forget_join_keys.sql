-- Deletes the keys of joins whose time is over, up to a limit; returns their number. Skips a key in
-- use by a publisher.
WITH forgotten AS (
    DELETE FROM delivery_joinkey
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM delivery_joinkey
        WHERE expires_at < now()
        ORDER BY expires_at
        LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) FROM forgotten
