-- Adds successes to the health of these subscriptions' URLs, except URLs whose row is locked.
-- Returns the subscriptions of the written URLs. This connection reads for all lanes, so it must
-- not wait for a row lock; these successes can.
WITH counts AS (
    SELECT
        subscriptions_url(subscription.endpoint) AS url, sum(succeeded.attempts) AS attempts,
        array_agg(subscription.id) AS subscriptions
    FROM json_to_recordset(%(rows)s::json) AS succeeded (subscription_id bigint, attempts bigint)
    JOIN subscriptions_subscription subscription ON subscription.id = succeeded.subscription_id
    GROUP BY subscriptions_url(subscription.endpoint)
), free AS (
    SELECT health.url
    FROM delivery_urlhealth health
    JOIN counts ON counts.url = health.url
    FOR UPDATE OF health SKIP LOCKED
), counted AS (
    UPDATE delivery_urlhealth health
    SET attempts = health.attempts + counts.attempts, failures_in_row = 0,
        last_success_at = now(), first_success_at = coalesce(health.first_success_at, now())
    FROM counts
    JOIN free ON free.url = counts.url
    WHERE health.url = counts.url
    RETURNING health.url
), made AS (
    INSERT INTO delivery_urlhealth (
        url, state, attempts, failures, failures_in_row, first_success_at
    )
    SELECT url, 'ENABLED', attempts, 0, 0, now()
    FROM counts
    WHERE NOT EXISTS (SELECT FROM delivery_urlhealth health WHERE health.url = counts.url)
    ON CONFLICT (url) DO NOTHING
    RETURNING url
)
SELECT unnest(counts.subscriptions) AS subscription_id
FROM counts
WHERE counts.url IN (SELECT url FROM counted UNION SELECT url FROM made)
