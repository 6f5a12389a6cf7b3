-- Adds attempts and failures to the health of the URLs of these subscriptions, in the order of
-- URLs, so that two senders never deadlock.
INSERT INTO delivery_urlhealth (
    url, state, attempts, failures, failures_in_row, first_success_at
)
SELECT
    subscriptions_url(subscription.endpoint), 'ENABLED', sum(tried.attempts), sum(tried.failures),
    sum(tried.failures_since_success),
    CASE WHEN sum(tried.attempts) > sum(tried.failures) THEN now() END
FROM json_to_recordset(%(rows)s::json) AS tried (
    subscription_id bigint, attempts bigint, failures bigint, failures_since_success bigint
)
JOIN subscriptions_subscription subscription ON subscription.id = tried.subscription_id
GROUP BY subscriptions_url(subscription.endpoint)
ORDER BY subscriptions_url(subscription.endpoint)
ON CONFLICT (url) DO UPDATE
SET attempts = delivery_urlhealth.attempts + excluded.attempts,
    failures = delivery_urlhealth.failures + excluded.failures,
    failures_in_row = CASE
        WHEN excluded.attempts > excluded.failures THEN excluded.failures_in_row
        ELSE delivery_urlhealth.failures_in_row + excluded.failures_in_row
    END,
    last_success_at = CASE
        WHEN excluded.attempts > excluded.failures THEN now()
        ELSE delivery_urlhealth.last_success_at
    END,
    first_success_at = coalesce(delivery_urlhealth.first_success_at, excluded.first_success_at)
