-- The headers of messages, and stored outputs, for deliveries to subscriptions that have, or had, a
-- script.
-- In the requested order, with at most so many bytes of stored bodies, but always the first.
-- LATERAL with LIMIT: a plan made for a join while the outputs were few reads all of them.
SELECT found.*
FROM (
    SELECT
        wanted.id, message.headers::text AS headers, output.script_version, output.body,
        output.content_type, output.headers AS output_headers, output.path, wanted.place,
        sum(coalesce(octet_length(output.body), 0)) OVER (ORDER BY wanted.place)
            - coalesce(octet_length(output.body), 0) AS bytes_before
    FROM unnest(%(delivery)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
    CROSS JOIN LATERAL (
        SELECT headers FROM delivery_message WHERE id = wanted.id >> 20 LIMIT 1
    ) AS message
    LEFT JOIN LATERAL (
        SELECT script_version, body, content_type, headers, path
        FROM delivery_scriptoutput WHERE delivery_id = wanted.id LIMIT 1
    ) AS output ON true
) AS found
WHERE found.bytes_before < %(bytes)s::bigint
ORDER BY found.place
