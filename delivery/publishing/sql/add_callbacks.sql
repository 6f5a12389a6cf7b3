-- Stores the callbacks of QUEUE messages, one a group, in the storing transaction of the messages.
-- A delivery without a group has nobody who could answer.
INSERT INTO delivery_callback (message_id, queue_group, url, hop, expires_at)
SELECT DISTINCT delivery.message_id, delivery.queue_group, wanted.url, wanted.hop,
    message.published_at + make_interval(days => %(days)s)
FROM unnest(
    %(message)s::bigint[], %(url)s::text[], %(hop)s::smallint[]
) AS wanted (message_id, url, hop)
JOIN LATERAL (
    SELECT published_at FROM delivery_message WHERE id = wanted.message_id LIMIT 1
) message ON true
JOIN delivery_waiting delivery
    ON delivery.id BETWEEN wanted.message_id << 20 AND wanted.message_id << 20 | 1048575
WHERE delivery.queue_group IS NOT NULL
