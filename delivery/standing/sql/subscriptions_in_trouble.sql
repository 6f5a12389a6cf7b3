-- The subscriptions that are STOPPED or DOWN. Begins with what stops them: lanes by lane_stopped,
-- endpoints that are DOWN, and URLs by subscription_url.
SELECT candidate.id, stop.state
FROM (
    SELECT subscription.id
    FROM delivery_stoppedlane lane
    JOIN subscriptions_subscription subscription
        ON subscription.subscriber_id = lane.subscriber_id
    UNION
    SELECT subscription_id FROM delivery_endpointhealth WHERE subscription_id > 0
    UNION
    SELECT subscription.id
    FROM delivery_urlhealth health
    JOIN subscriptions_subscription subscription
        ON subscriptions_url(subscription.endpoint) = health.url
    WHERE health.state <> 'ENABLED'
) AS candidate
CROSS JOIN LATERAL (
    SELECT state FROM delivery_subscriptionstop WHERE subscription_id = candidate.id LIMIT 1
) AS stop
WHERE stop.state IN ('STOPPED', 'DOWN')
ORDER BY candidate.id
