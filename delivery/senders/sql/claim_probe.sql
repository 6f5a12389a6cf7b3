-- Lets one sender make the next attempt at a disabled URL: the sender that gets the row.
UPDATE delivery_urlhealth health
SET next_probe_at = now() + make_interval(secs => policy.breaker_probe_seconds)
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.id = %(subscription)s AND health.url = subscriptions_url(subscription.endpoint)
    AND health.state = 'DISABLED' AND health.next_probe_at <= now()
RETURNING health.url
