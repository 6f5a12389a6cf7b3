-- Compares the conditions before a subscription's change and after it on the newest messages of the
-- event type, limited in number and in bytes of bodies. Messages for a destination are left out,
-- because filters had no part in them. Relies on message_by_event_type.
WITH newest AS MATERIALIZED (
    SELECT id, octet_length(body) AS bytes
    FROM delivery_message
    WHERE event_type_id = %(event_type)s
    ORDER BY id DESC
    LIMIT %(messages)s
),
counted AS (
    SELECT id, sum(bytes) OVER (ORDER BY id DESC) - bytes AS bytes_before
    FROM newest
),
asked AS MATERIALIZED (
    SELECT message.id, message.headers, inturn_json(message.body) AS body
    FROM counted
    JOIN delivery_message message ON message.id = counted.id
    WHERE counted.bytes_before < %(bytes)s AND message.destination = ''
),
judged AS (
    SELECT id, ({before}) IS TRUE AS before, ({after}) IS TRUE AS after
    FROM asked
)
SELECT
    count(*) AS asked,
    count(*) FILTER (WHERE after AND NOT before) AS more,
    count(*) FILTER (WHERE before AND NOT after) AS fewer,
    max(id) FILTER (WHERE after AND NOT before) AS example_of_more,
    max(id) FILTER (WHERE before AND NOT after) AS example_of_fewer
FROM judged
