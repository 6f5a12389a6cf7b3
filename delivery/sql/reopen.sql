-- Makes settled deliveries PENDING again at their old place, with a fresh budget of attempts, and returns which, and their lanes.
-- To be executed after `lock_groups.sql`: of a QUEUE group that has a DELIVERED nothing is sent again. What failed in the
-- retry lane goes back to its subscriber's own. What was cancelled there stays there: its sender may have read it or be
-- sending it, and would do so beside the other lane's. What is pulled goes back into its mailbox, also
-- a VOLATILE one: a person wants it. It has its whole time to live again.
UPDATE delivery_delivery delivery
SET status = 'PENDING',
    settled_at = NULL,
    attempts_before = delivery.attempts,
    settled_before = delivery.settled_before + 1,
    redelivery = 'resubmitted',
    reason = %(reason)s,
    skipped = false,
    next_attempt_at = place.due_at,
    expires_at = place.expires_at,
    server_started_at = NULL,
    lane_id = place.lane_id
FROM (
    SELECT
        chosen.id,
        subscription.subscriber_id,
        now() + make_interval(secs => least(
            event_type.ttl_seconds, CASE WHEN subscription.mode = 'PULL' THEN %(mailbox_days)s::int * 86400 END
        )) AS expires_at,
        CASE
            WHEN subscription.mode = 'PULL' THEN NULL
            WHEN chosen.queue_group IS NOT NULL THEN chosen.lane_id
            WHEN chosen.callback_id IS NOT NULL THEN callback.id
            WHEN chosen.lane_id = retry.id AND chosen.status = 'CANCELLED' THEN retry.id
            ELSE own.id
        END AS lane_id,
        CASE WHEN chosen.lane_id = retry.id AND chosen.status = 'CANCELLED' THEN now() END AS due_at
    FROM delivery_delivery chosen
    JOIN subscriptions_subscription subscription ON subscription.id = chosen.subscription_id
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    JOIN delivery_lane own ON own.subscriber_id = subscription.subscriber_id
    JOIN delivery_lane callback ON callback.kind = 'CALLBACK' AND callback.number = 0
    JOIN delivery_lane retry ON retry.kind = 'RETRY' AND retry.number = 0
    WHERE chosen.id = ANY (%(delivery)s::bigint[]) AND (chosen.lane_id IS NOT NULL OR subscription.mode = 'PULL')
) AS place
WHERE delivery.id = place.id
    AND delivery.status = ANY (%(from)s::text[])
    AND NOT EXISTS (
        SELECT FROM delivery_delivery sibling
        WHERE sibling.message_id = delivery.message_id AND sibling.queue_group = delivery.queue_group
            AND sibling.status = 'DELIVERED'
    )
RETURNING delivery.id, delivery.lane_id, place.subscriber_id
