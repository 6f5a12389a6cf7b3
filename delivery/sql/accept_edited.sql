-- Stores an edited copy of a message with one delivery of it: to the subscription of a settled delivery of the original.
-- Returns nothing when that delivery is open, for it would be sent as well, or is in no lane. The copy of a QUEUE message
-- has one group, of that one endpoint; the copy of a callback's answer goes to the same callback.
WITH original AS MATERIALIZED (
    SELECT
        delivery.message_id, message.event_type_id, delivery.subscription_id, delivery.queue_group,
        delivery.callback_id
    FROM delivery_delivery delivery
    JOIN delivery_message message ON message.id = delivery.message_id
    WHERE delivery.id = %(delivery)s AND delivery.lane_id IS NOT NULL
        AND delivery.status NOT IN ('PENDING', 'IN_FLIGHT')
    FOR NO KEY UPDATE OF delivery
), copied AS (
    INSERT INTO delivery_message (event_type_id, edited_from_id, headers, content_type, body)
    SELECT event_type_id, message_id, %(headers)s::text::jsonb, %(content_type)s::text, %(body)s::bytea
    FROM original
    RETURNING id
)
INSERT INTO delivery_delivery (
    message_id, subscription_id, lane_id, queue_group, callback_id, status, attempts, skipped, redelivery, reason,
    receive_count
)
SELECT
    copied.id, original.subscription_id,
    CASE
        WHEN original.queue_group IS NOT NULL THEN queue.id
        WHEN original.callback_id IS NOT NULL THEN callback.id
        ELSE own.id
    END,
    CASE WHEN original.queue_group IS NOT NULL THEN 0 END, original.callback_id, 'PENDING', 0, false, '', '', 0
FROM original
CROSS JOIN copied
JOIN subscriptions_subscription subscription ON subscription.id = original.subscription_id
JOIN delivery_lane own ON own.subscriber_id = subscription.subscriber_id
JOIN delivery_lane callback ON callback.kind = 'CALLBACK' AND callback.number = 0
JOIN delivery_lane queue
    ON queue.kind = 'QUEUE' AND queue.number = copied.id %% (
        SELECT count(*) FROM delivery_lane WHERE kind = 'QUEUE' AND number < %(queue_senders)s
    )
RETURNING message_id, id, lane_id
