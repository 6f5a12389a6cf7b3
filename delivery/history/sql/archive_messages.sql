-- Selects the messages to archive: published in an interval, in a range of ids. Leans on
-- message_by_time.
SELECT
    message.id, message.published_at, event_type.name AS event_type, publisher.name AS publisher,
    message.headers::text AS headers, message.content_type, message.body, message.destination,
    message.edited_from_id AS edited_from, message.owed, message.transaction_id, message.seen_before
FROM delivery_message message
JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
LEFT JOIN subscriptions_publisher publisher ON publisher.id = message.publisher_id
WHERE message.published_at >= %(since)s AND message.published_at < %(until)s
    AND message.id >= %(first)s AND message.id < %(last)s
