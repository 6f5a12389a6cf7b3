-- The subscriptions that changed lately, by themselves, by their policy, because a secret of theirs expired or their URL broke,
-- with the version they have now (see `endpoints.sql`). The window overlaps the last call amply: a change
-- becomes visible later than its time says.
SELECT
    subscription.id, concat_ws(
        ' ', subscription.xmin, policy.xmin, health.state, (
            SELECT string_agg(secret.id || ':' || secret.xmin, ' ' ORDER BY secret.id)
            FROM subscriptions_signingsecret secret
            WHERE secret.subscription_id = subscription.id
                AND (secret.expires_at IS NULL OR secret.expires_at > now())
        )
    ) AS version
FROM (
    SELECT id
    FROM subscriptions_subscription
    WHERE updated_at > now() - make_interval(secs => %(seconds)s)
    UNION
    SELECT subscription.id
    FROM subscriptions_policy policy
    JOIN subscriptions_subscription subscription ON subscription.policy_id = policy.id
    WHERE policy.updated_at > now() - make_interval(secs => %(seconds)s)
    UNION
    SELECT subscription_id
    FROM subscriptions_signingsecret
    WHERE expires_at BETWEEN now() - make_interval(secs => %(seconds)s) AND now()
    UNION
    SELECT subscription.id
    FROM delivery_urlhealth health
    JOIN subscriptions_subscription subscription ON subscriptions_url(subscription.endpoint) = health.url
    WHERE health.state <> 'ENABLED' AND health.since > now() - make_interval(secs => %(seconds)s)
) AS change
JOIN subscriptions_subscription subscription ON subscription.id = change.id
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
LEFT JOIN delivery_urlhealth health ON health.url = subscriptions_url(subscription.endpoint)
