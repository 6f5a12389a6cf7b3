-- Returns those keys of subscriptions whose next message would not count as new: the first message
-- is open, delivered, in doubt or deleted, and within the window.
SELECT known.subscription_id, known.key
FROM unnest(%(subscription)s::bigint[], %(key)s::bytea[]) AS wanted (subscription_id, key)
CROSS JOIN LATERAL (
    SELECT subscription_id, key, delivery_id, seen_at
    FROM delivery_dedupkey
    WHERE subscription_id = wanted.subscription_id AND key = wanted.key
    LIMIT 1
) AS known
JOIN subscriptions_subscription subscription ON subscription.id = known.subscription_id
LEFT JOIN LATERAL (
    SELECT status FROM delivery_delivery WHERE id = known.delivery_id LIMIT 1
) AS first ON true
WHERE known.seen_at > now() - make_interval(secs => subscription.dedup_window_seconds)
    AND coalesce(
        first.status NOT IN ('REJECTED', '3xxNOTSUPPORTED', 'FAILED', 'EXPIRED', 'CANCELLED'), true
    )
