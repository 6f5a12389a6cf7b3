-- Messages number %(first)s to %(last)s, in the order of their ids and of time, more of them by day
-- than by night. A few event types have most of them.
INSERT INTO delivery_message (
    event_type_id, publisher_id, headers, content_type, body, destination, published_at
)
SELECT
    event_type.event_type_id,
    (%(publishers)s::bigint[])[1 + (chosen.number * 7919) %% cardinality(%(publishers)s::bigint[])],
    jsonb_build_object(
        'content-type', 'application/json', 'user-agent', 'application/4.2', 'filter-string',
        'group-' || chosen.group_number
    ),
    'application/json',
    convert_to(
        body.beginning || format(
            ', "number": %%s, "reference": "ref-%%s"}', chosen.number,
            substr(md5(chosen.number::text), 1, 10)
        ),
        'UTF8'
    ),
    CASE WHEN chosen.number %% 997 = 0 THEN 'subscriber-0001' ELSE '' END,
    least(
        %(now)s,
        %(now)s - interval '1 day' * (%(days)s - day - (hour - 0.12 * sin(2 * pi() * hour)))
    )
FROM (
    SELECT
        number,
        floor(
            pow(random(), 3) * (SELECT count(*) FROM many_event_type)
        )::bigint AS event_type_number,
        floor(random() * 5)::int AS group_number,
        floor(number::float * %(days)s / %(messages)s) AS day,
        number::float * %(days)s / %(messages)s
            - floor(number::float * %(days)s / %(messages)s) AS hour
    FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS number
) AS chosen
JOIN many_event_type event_type ON event_type.number = chosen.event_type_number
JOIN many_body body ON body.number = chosen.number %% %(bodies)s
ORDER BY chosen.number
