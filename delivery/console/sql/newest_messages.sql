-- The newest messages of an event type with headers and body, newest first: no more than so many, and none beyond so many
-- bytes of bodies. Leans on message_by_event_type; how long a body is stands beside it, so only what is answered is read.
WITH newest AS MATERIALIZED (
    SELECT id, octet_length(body) AS bytes
    FROM delivery_message
    WHERE event_type_id = %(event_type)s
    ORDER BY id DESC
    LIMIT %(messages)s
),
counted AS (
    SELECT id, bytes, sum(bytes) OVER (ORDER BY id DESC) - bytes AS bytes_before
    FROM newest
)
SELECT message.id, message.published_at, message.destination, message.headers, message.body
FROM counted
JOIN delivery_message message ON message.id = counted.id
WHERE counted.bytes_before < %(bytes)s
ORDER BY message.id DESC
