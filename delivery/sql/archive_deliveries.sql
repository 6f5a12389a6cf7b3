-- What of the deliveries goes into the archive, without what follows from their subscriptions: settled in a piece of time, of a range
-- of ids. Leans on delivery_settled. Each message is looked up: those of neighbours are the same, or neighbours.
SELECT
    delivery.id, delivery.settled_at, delivery.status, delivery.message_id, message.published_at,
    delivery.subscription_id, delivery.queue_group::int AS queue_group, delivery.callback_id, delivery.replay_id,
    delivery.attempts, delivery.attempts_before, delivery.redelivery, delivery.reason, delivery.receive_count,
    message.body_bytes, message.transaction_id, message.seen_before
FROM delivery_delivery delivery
CROSS JOIN LATERAL (
    SELECT published_at, octet_length(body)::bigint AS body_bytes, transaction_id, seen_before
    FROM delivery_message
    WHERE id = delivery.message_id
    OFFSET 0
) AS message
WHERE delivery.settled_at >= %(since)s AND delivery.settled_at < %(until)s
    AND delivery.id >= %(first)s AND delivery.id < %(last)s
