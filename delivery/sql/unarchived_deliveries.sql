-- What is not in the archive yet: deliveries that are open, or were settled since the watermark, each with what its attempts come to.
SELECT
    delivery.id, delivery.status, delivery.settled_at, delivery.message_id, delivery.subscription_id,
    subscription.subscriber_id,
    (
        event_type.kind = 'TOPIC' AND subscription.mode = 'PUSH' AND subscriber.processing = 'SERIAL'
        AND delivery.callback_id IS NULL
    )::int AS is_in_turn,
    delivery.queue_group::int AS queue_group, delivery.replay_id, message.published_at, delivery.expires_at,
    (delivery.server_started_at IS NOT NULL)::int AS is_volatile, message.transaction_id, message.seen_before,
    delivery.attempts, delivery.attempts_before, (delivery.redelivery = 'resubmitted')::int AS is_resent,
    tried.tried, tried.tried AS numbers, tried.first_number, tried.last_number, tried.first_at, tried.successes,
    tried.success_number, tried.lost
FROM delivery_delivery delivery
JOIN delivery_message message ON message.id = delivery.message_id
JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
CROSS JOIN LATERAL (
    SELECT
        count(*)::int AS tried, min(number) AS first_number, max(number) AS last_number,
        min(started_at) FILTER (WHERE number = 1) AS first_at,
        count(*) FILTER (WHERE outcome IN ('SUCCESS', 'ACKNOWLEDGED'))::int AS successes,
        min(number) FILTER (WHERE outcome IN ('SUCCESS', 'ACKNOWLEDGED')) AS success_number,
        count(*) FILTER (WHERE outcome = 'LOST')::int AS lost
    FROM delivery_attempt
    WHERE delivery_id = delivery.id
) AS tried
WHERE (delivery.status IN ('PENDING', 'IN_FLIGHT') OR delivery.settled_at >= %(since)s)
