-- Selects the message columns of deliveries, by spans of messages' ids: each from one of `firsts`
-- to the `lasts` at the same place, all from `first` to `last`. Each span reads a range of the
-- primary key. Only the partitions of all spans are planned.
SELECT
    message.message_id, message.published_at, message.body_bytes, message.transaction_id,
    message.seen_before
FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS span (first, last)
CROSS JOIN LATERAL (
    SELECT
        id AS message_id, published_at, octet_length(body)::bigint AS body_bytes, transaction_id,
        seen_before
    FROM delivery_message
    WHERE id >= span.first AND id <= span.last AND id >= %(first)s AND id <= %(last)s
    OFFSET 0
) AS message
