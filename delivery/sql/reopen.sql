-- Makes settled deliveries PENDING again at their old place, with a fresh budget of attempts, and returns which, and their lanes.
-- To be executed after `lock_groups.sql`: of a QUEUE group that has a DELIVERED nothing is sent again. What failed in the
-- retry lane goes back to its subscriber's own, unless the sender of the retry lane is at it at this moment.
UPDATE delivery_delivery delivery
SET status = 'PENDING',
    settled_at = NULL,
    attempts_before = delivery.attempts,
    redelivery = 'resubmitted',
    reason = %(reason)s,
    skipped = false,
    next_attempt_at = NULL,
    expires_at = NULL,
    lane_id = place.lane_id
FROM (
    SELECT
        chosen.id,
        CASE
            WHEN chosen.queue_group IS NOT NULL THEN chosen.lane_id
            WHEN chosen.callback_id IS NOT NULL THEN callback.id
            ELSE own.id
        END AS lane_id
    FROM delivery_delivery chosen
    JOIN subscriptions_subscription subscription ON subscription.id = chosen.subscription_id
    JOIN delivery_lane own ON own.subscriber_id = subscription.subscriber_id
    JOIN delivery_lane callback ON callback.kind = 'CALLBACK' AND callback.number = 0
    WHERE chosen.id = ANY (%(delivery)s::bigint[]) AND chosen.lane_id IS NOT NULL
) AS place
WHERE delivery.id = place.id
    AND delivery.status = ANY (%(from)s::text[])
    AND NOT EXISTS (
        SELECT FROM delivery_delivery sibling
        WHERE sibling.message_id = delivery.message_id AND sibling.queue_group = delivery.queue_group
            AND sibling.status = 'DELIVERED'
    )
    AND NOT EXISTS (
        SELECT
        FROM delivery_lane served
        CROSS JOIN LATERAL unnest(served.run_ids, served.run_attempts) AS under_way (id, attempts)
        WHERE served.id = delivery.lane_id AND served.id <> place.lane_id
            AND under_way.id = delivery.id AND under_way.attempts = delivery.attempts
    )
RETURNING delivery.id, delivery.lane_id
