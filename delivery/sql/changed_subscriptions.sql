-- The subscriptions that changed lately, by themselves, by their policy or because a secret of theirs expired.
-- The window overlaps the last call amply: a change becomes visible later than its time says.
SELECT subscription.id
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.updated_at > now() - make_interval(secs => %(seconds)s)
    OR policy.updated_at > now() - make_interval(secs => %(seconds)s)
UNION
SELECT subscription_id
FROM subscriptions_signingsecret
WHERE expires_at BETWEEN now() - make_interval(secs => %(seconds)s) AND now()
