-- The number of stopped lanes by cause, BLOCKED or SUSPENDED, and of the endpoints that are DOWN in
-- a lane that goes on. Uses lane_stopped and the few rows of endpoints.
SELECT cause, count(*) AS count
FROM delivery_stoppedlane
WHERE state = 'STOPPED'
GROUP BY cause
UNION ALL
SELECT stop.state, count(*)
FROM delivery_endpointhealth health
CROSS JOIN LATERAL (
    SELECT state FROM delivery_subscriptionstop
    WHERE subscription_id = health.subscription_id
    LIMIT 1
) AS stop
WHERE stop.state = 'DOWN'
GROUP BY stop.state
