-- The newest messages of an event type with headers and body, newest first, up to a number of
-- messages and a number of bytes in bodies. Uses message_by_event_type; a body's length is read
-- without the body, so only returned bodies are read.
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
