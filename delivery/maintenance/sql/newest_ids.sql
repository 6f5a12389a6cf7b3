-- Returns the newest id drawn for a message, and the number of ids drawn in the last day.
SELECT
    sequence.last_value,
    sequence.last_value - coalesce(
        (
            SELECT id FROM delivery_message
            WHERE published_at > now() - interval '1 day'
            ORDER BY published_at
            LIMIT 1
        ),
        sequence.last_value
    )
FROM delivery_message_id_seq AS sequence
