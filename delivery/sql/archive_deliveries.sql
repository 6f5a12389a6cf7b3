-- What of the deliveries goes into the archive, without what follows from their subscriptions: settled in a piece of time, of a range
-- of ids. Leans on delivery_settled.
SELECT
    delivery.id, delivery.settled_at, delivery.status, delivery.message_id, message.published_at,
    delivery.subscription_id, delivery.queue_group::int AS queue_group, delivery.callback_id, delivery.replay_id,
    delivery.attempts, delivery.attempts_before, delivery.redelivery, delivery.reason, delivery.receive_count,
    octet_length(message.body)::bigint AS body_bytes, message.transaction_id, message.seen_before
FROM delivery_delivery delivery
JOIN delivery_message message ON message.id = delivery.message_id
WHERE delivery.settled_at >= %(since)s AND delivery.settled_at < %(until)s
    AND delivery.id >= %(first)s AND delivery.id < %(last)s
