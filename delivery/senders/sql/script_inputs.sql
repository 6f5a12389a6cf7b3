-- The headers of messages, and stored outputs, for deliveries to subscriptions that have, or had, a
-- script.
-- In the requested order, with at most so many bytes of stored bodies, but always the first.
SELECT found.*
FROM (
    SELECT
        wanted.id, message.headers::text AS headers, output.script_version, output.body,
        output.content_type, output.headers AS output_headers, output.path, wanted.place,
        sum(coalesce(octet_length(output.body), 0)) OVER (ORDER BY wanted.place)
            - coalesce(octet_length(output.body), 0) AS bytes_before
    FROM unnest(%(delivery)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
    JOIN delivery_message message ON message.id = wanted.id >> 20
    LEFT JOIN delivery_scriptoutput output ON output.delivery_id = wanted.id
) AS found
WHERE found.bytes_before < %(bytes)s::bigint
ORDER BY found.place
