-- The newest message of each of these event types. Uses message_by_event_type: a probe for each.
SELECT event_type.id, newest.id AS message_id, newest.published_at
FROM unnest(%(ids)s::bigint[]) AS event_type (id)
CROSS JOIN LATERAL (
    SELECT message.id, message.published_at
    FROM delivery_message message
    WHERE message.event_type_id = event_type.id
    ORDER BY message.id DESC
    LIMIT 1
) newest
