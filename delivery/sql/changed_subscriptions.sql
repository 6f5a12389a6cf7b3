-- The subscriptions that changed lately, by themselves, by their policy or because a secret of theirs expired,
-- and when. The window overlaps the last call amply: a change becomes visible later than its time says.
SELECT id, max(changed_at) AS changed_at
FROM (
    SELECT id, updated_at AS changed_at
    FROM subscriptions_subscription
    WHERE updated_at > now() - make_interval(secs => %(seconds)s)
    UNION ALL
    SELECT subscription.id, policy.updated_at
    FROM subscriptions_policy policy
    JOIN subscriptions_subscription subscription ON subscription.policy_id = policy.id
    WHERE policy.updated_at > now() - make_interval(secs => %(seconds)s)
    UNION ALL
    SELECT subscription_id, expires_at
    FROM subscriptions_signingsecret
    WHERE expires_at BETWEEN now() - make_interval(secs => %(seconds)s) AND now()
) AS change
GROUP BY id
