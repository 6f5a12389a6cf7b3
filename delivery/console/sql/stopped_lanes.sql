-- The stopped lanes by the view delivery_stoppedlane, or only a subscriber's, longest first, with
-- the delivery stopping each and the deliveries waiting behind it. `waiting` counts the PENDING
-- deliveries of ACTIVE subscriptions without the stopping delivery; `freed` counts those of other
-- subscriptions, which flow again when the stopping subscription is made INACTIVE. Both use
-- delivery_pending, up to a limit. For a CONCURRENT subscriber with an endpoint down, `waiting`
-- counts only this subscription's deliveries, and the stopping delivery may be settled; `down`
-- counts the endpoints down, `down_names` names the first of them.
SELECT
    lane.id AS lane_id, lane.kind, lane.number, lane.state, lane.since, lane.reason, lane.failures,
    lane.next_try_at, lane.subscriber_id, subscriber.name AS subscriber,
    coalesce(subscriber.processing = 'CONCURRENT', false) AS is_concurrent,
    head.id AS delivery_id, head.status, head.message_id, head.attempts,
    head.subscription_id, subscription.name AS subscription, subscription.endpoint,
    subscription.probe_url, event_type.name AS event,
    (SELECT count(*) FROM delivery_endpointhealth WHERE lane_id = lane.id) AS down,
    ARRAY(
        SELECT other.name
        FROM delivery_endpointhealth health
        JOIN subscriptions_subscription other ON other.id = health.subscription_id
        WHERE health.lane_id = lane.id
        ORDER BY health.since, health.subscription_id
        LIMIT %(names)s
    ) AS down_names,
    (
        SELECT count(*) FROM (
            SELECT
            FROM subscriptions_subscription other
            JOIN delivery_waiting behind
                ON behind.lane_id = lane.id AND behind.skipped = ANY ('{f,t}'::boolean[])
                AND behind.subscription_id = other.id AND behind.status = 'PENDING'
            WHERE other.subscriber_id = lane.subscriber_id AND other.status = 'ACTIVE'
                AND behind.id IS DISTINCT FROM head.id
                AND (
                    subscriber.processing IS DISTINCT FROM 'CONCURRENT'
                    OR other.id = head.subscription_id
                )
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting,
    (
        SELECT count(*) FROM (
            SELECT
            FROM subscriptions_subscription other
            JOIN delivery_waiting behind
                ON behind.lane_id = lane.id AND behind.skipped = ANY ('{f,t}'::boolean[])
                AND behind.subscription_id = other.id AND behind.status = 'PENDING'
            WHERE other.subscriber_id = lane.subscriber_id AND other.status = 'ACTIVE'
                AND other.id <> head.subscription_id
                AND subscriber.processing IS DISTINCT FROM 'CONCURRENT'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS freed,
    (
        SELECT count(*) FROM subscriptions_subscription other
        WHERE other.subscriber_id = lane.subscriber_id AND other.status = 'ACTIVE'
            AND other.id <> head.subscription_id
    ) AS others,
    (
        SELECT count(*) FROM subscriptions_subscription other
        WHERE other.subscriber_id = lane.subscriber_id AND other.status <> 'INACTIVE'
    ) AS subscriptions
FROM delivery_stoppedlane stopped
JOIN delivery_lane lane ON lane.id = stopped.lane_id
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
LEFT JOIN delivery_delivery head ON head.id = lane.delivery_id
LEFT JOIN subscriptions_subscription subscription ON subscription.id = head.subscription_id
LEFT JOIN delivery_message message ON message.id = head.message_id
LEFT JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
WHERE %(subscriber)s::bigint IS NULL OR lane.subscriber_id = %(subscriber)s
ORDER BY stopped.since, lane.id
LIMIT %(rows)s
