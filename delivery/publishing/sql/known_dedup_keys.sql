-- Returns those keys of subscriptions whose next message would not count as new: the first message
-- is open, delivered, in doubt or deleted, and within the window.
SELECT known.subscription_id, known.key
FROM unnest(%(subscription)s::bigint[], %(key)s::bytea[]) AS wanted (subscription_id, key)
JOIN delivery_dedupkey known
    ON known.subscription_id = wanted.subscription_id AND known.key = wanted.key
JOIN subscriptions_subscription subscription ON subscription.id = known.subscription_id
LEFT JOIN delivery_delivery first ON first.id = known.delivery_id
WHERE known.seen_at > now() - make_interval(secs => subscription.dedup_window_seconds)
    AND coalesce(
        first.status NOT IN ('REJECTED', '3xxNOTSUPPORTED', 'FAILED', 'EXPIRED', 'CANCELLED'), true
    )
