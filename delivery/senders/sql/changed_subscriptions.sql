-- The subscriptions that changed since the last look, with their present version (see
-- `endpoints.sql`).
-- The change is their own, their subscriber's, their policy's or their secrets', an expired secret,
-- or a change of their URL's health. There is at least one row: its first columns are the
-- parameters of the next look, and whether all sending is HELD. Only this database's clock is read.
-- A change that commits late is found: it has the number of its transaction, and the next look
-- begins with the oldest transaction that was under way during this one.
SELECT
    looked.horizon, looked.at, looked.is_held, change.id, concat_ws(
        ' ', subscription.xmin, policy.xmin, subscriber.status, md5(subscriber.headers),
        CASE WHEN summary.url IS NOT NULL THEN summary.state END,
        CASE WHEN subscription.script <> '' THEN library.version END, (
            SELECT string_agg(secret.id || ':' || secret.xmin, ' ' ORDER BY secret.id)
            FROM subscriptions_signingsecret secret
            WHERE secret.subscription_id = subscription.id
                AND (secret.expires_at IS NULL OR secret.expires_at > now())
        )
    ) AS version
FROM (
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon, now() AS at,
        EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD') AS is_held
) AS looked
LEFT JOIN (
    SELECT id
    FROM subscriptions_subscription
    WHERE changed_in >= %(horizon)s::bigint
    UNION
    SELECT subscription.id
    FROM subscriptions_subscriber subscriber
    JOIN subscriptions_subscription subscription ON subscription.subscriber_id = subscriber.id
    WHERE subscriber.changed_in >= %(horizon)s::bigint
    UNION
    SELECT subscription.id
    FROM subscriptions_policy policy
    -- OFFSET keeps it from being a join, which reads all subscriptions to find their policies.
    CROSS JOIN LATERAL (
        SELECT id FROM subscriptions_subscription WHERE policy_id = policy.id OFFSET 0
    ) AS subscription
    WHERE policy.changed_in >= %(horizon)s::bigint
    UNION
    SELECT subscription_id
    FROM subscriptions_signingsecret
    WHERE changed_in >= %(horizon)s::bigint
    UNION
    SELECT subscription_id
    FROM subscriptions_signingsecret
    WHERE expires_at > %(at)s::timestamptz AND expires_at <= now()
    UNION
    SELECT subscription.id
    FROM delivery_urlhealth health
    JOIN subscriptions_subscription subscription
        ON subscriptions_url(subscription.endpoint) = health.url
    WHERE health.changed_in >= %(horizon)s::bigint
    UNION
    SELECT subscription.id
    FROM subscriptions_scriptlibrary library
    JOIN subscriptions_subscription subscription ON subscription.script <> ''
    WHERE library.changed_in >= %(horizon)s::bigint
) AS change ON true
LEFT JOIN subscriptions_subscription subscription ON subscription.id = change.id
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
LEFT JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
LEFT JOIN delivery_endpointsummary summary ON summary.subscription_id = change.id
LEFT JOIN subscriptions_scriptlibrary library ON library.id = 1
