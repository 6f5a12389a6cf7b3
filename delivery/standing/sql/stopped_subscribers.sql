-- The subscribers with a STOPPED subscription, longest first; `is_by_url` if only URLs stop them.
-- Begins with what stops them: lanes by lane_stopped, and URLs by subscription_url.
SELECT candidate.subscriber_id, bool_and(stop.cause IN ('DISABLED', 'FROZEN')) AS is_by_url
FROM (
    SELECT subscription.id, subscription.subscriber_id
    FROM delivery_stoppedlane lane
    JOIN subscriptions_subscription subscription
        ON subscription.subscriber_id = lane.subscriber_id
    WHERE lane.state = 'STOPPED'
    UNION
    SELECT subscription.id, subscription.subscriber_id
    FROM delivery_urlhealth health
    JOIN subscriptions_subscription subscription
        ON subscriptions_url(subscription.endpoint) = health.url
    WHERE health.state <> 'ENABLED'
) AS candidate
CROSS JOIN LATERAL (
    SELECT state, cause, since FROM delivery_subscriptionstop
    WHERE subscription_id = candidate.id
    LIMIT 1
) AS stop
WHERE stop.state = 'STOPPED'
GROUP BY candidate.subscriber_id
ORDER BY min(stop.since), candidate.subscriber_id
