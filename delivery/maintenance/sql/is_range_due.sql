-- Whether the newest range of messages is in use, or there is none.
SELECT coalesce(
    sequence.last_value >= (
        SELECT first_id FROM delivery_messagerange
        ORDER BY first_id DESC
        LIMIT 1
    ),
    true
)
FROM delivery_message_id_seq AS sequence
