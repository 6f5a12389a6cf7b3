-- The journal of a message: the entries about it or the shown deliveries of it, and those about
-- their lanes, their subscriptions or all sending while they were open. Each part has a limit, and
-- keeps the newest.
(
    SELECT id, at, kind, text, actor, delivery_id, subscription_id, lane_id
    FROM delivery_journalentry
    WHERE message_id = %(message)s
    ORDER BY id DESC
    LIMIT %(limit)s
)
UNION
(
    SELECT id, at, kind, text, actor, delivery_id, subscription_id, lane_id
    FROM delivery_journalentry
    WHERE delivery_id = ANY (%(deliveries)s::bigint[])
    ORDER BY id DESC
    LIMIT %(limit)s
)
UNION
(
    SELECT id, at, kind, text, actor, delivery_id, subscription_id, lane_id
    FROM delivery_journalentry
    WHERE kind = ANY (%(stops)s::text[]) AND at BETWEEN %(since)s AND %(until)s AND (
        subscription_id = ANY (%(subscriptions)s::bigint[])
        OR lane_id = ANY (%(lanes)s::bigint[])
        OR (subscription_id IS NULL AND lane_id IS NULL)
    )
    ORDER BY id DESC
    LIMIT %(limit)s
)
ORDER BY id
