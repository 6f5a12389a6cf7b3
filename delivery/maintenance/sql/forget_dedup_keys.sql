-- Deletes dedup keys older than their subscription's window, up to a limit; returns their number.
-- Skips a key in use again by a publisher. Leans on dedup_key_by_time, a probe per subscription.
WITH forgotten AS (
    DELETE FROM delivery_dedupkey
    WHERE id = ANY (ARRAY(
        SELECT known.id
        FROM subscriptions_subscription subscription
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_dedupkey
            WHERE subscription_id = subscription.id
                AND seen_at < now() - make_interval(secs => subscription.dedup_window_seconds)
            ORDER BY seen_at
            LIMIT %(limit)s
            FOR UPDATE SKIP LOCKED
        ) AS known
        LIMIT %(limit)s
    ))
    RETURNING id
)
SELECT count(*) FROM forgotten
