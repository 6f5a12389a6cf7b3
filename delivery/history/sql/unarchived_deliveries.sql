-- The unarchived deliveries, each with a summary of the attempts: open deliveries, and settlements
-- since the watermark, including those ended by a person.
SELECT
    found.delivery_id AS id, found.status, found.settled_at, found.message_id,
    found.subscription_id, subscription.subscriber_id,
    (
        event_type.kind = 'TOPIC' AND subscription.mode = 'PUSH'
        AND subscriber.processing = 'SERIAL'
        AND found.callback_id IS NULL
    )::int AS is_in_turn,
    found.queue_group::int AS queue_group, found.replay_id, message.published_at,
    delivery.expires_at,
    (delivery.server_started_at IS NOT NULL)::int AS is_volatile, message.transaction_id,
    message.seen_before, found.attempts, found.attempts_before, found.settled_before,
    (found.redelivery = 'resubmitted')::int AS is_resent, tried.tried, tried.tried AS numbers,
    tried.first_number, tried.last_number, tried.first_at, tried.successes, tried.success_number,
    tried.lost
FROM (
    SELECT
        delivery_id, status, settled_at, message_id, subscription_id, callback_id, queue_group,
        replay_id, attempts, attempts_before, settled_before, redelivery
    FROM delivery_settlement
    WHERE settled_at >= %(since)s
    UNION ALL
    SELECT
        id, status, NULL, message_id, subscription_id, callback_id, queue_group, replay_id,
        attempts, attempts_before, settled_before, redelivery
    FROM delivery_delivery
    WHERE status IN ('PENDING', 'IN_FLIGHT')
) AS found
JOIN delivery_delivery delivery ON delivery.id = found.delivery_id
JOIN delivery_message message ON message.id = found.message_id
JOIN subscriptions_subscription subscription ON subscription.id = found.subscription_id
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
    WHERE delivery_id = found.delivery_id
) AS tried
