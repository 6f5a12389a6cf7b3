-- The due deliveries of a lane without order (the retry lane, the callback lane, a CONCURRENT
-- subscriber's).
-- For each subscription: deliveries postponed until now, first due first, and deliveries never
-- tried. Expired deliveries are left out. Finds the subscriptions by skipping along
-- delivery_pending, and reads their deliveries on delivery_due, so that deliveries that are not due
-- cost nothing, however many they are. Each subscription gets its share of the rows. A limit (NULL:
-- none) applies to all rows together: subscriptions alternate, for due and for fresh deliveries;
-- when not even each has a turn the choice is random, so that none is left out for ever.
WITH RECURSIVE places AS (
    {places_of_lane}
), share AS (
    SELECT greatest(%(rows)s / greatest(count(DISTINCT subscription_id), 1), 4) AS rows FROM places
), due AS (
    SELECT
        delivery.*,
        row_number() OVER (
            PARTITION BY delivery.subscription_id, delivery.next_attempt_at IS NULL
            ORDER BY delivery.next_attempt_at, delivery.id
        ) AS turn
    FROM (SELECT DISTINCT subscription_id FROM places) AS place
    JOIN delivery_sendable subscription ON subscription.id = place.subscription_id
    CROSS JOIN LATERAL (
        (
            SELECT waiting.*, callback.url AS callback_url, callback.origin AS callback_origin
            FROM delivery_waiting waiting
            LEFT JOIN LATERAL (
                SELECT url, substring(url FROM '^[^/]+//[^/?#]*') AS origin
                FROM delivery_callback
                WHERE id = waiting.callback_id LIMIT 1
            ) AS callback ON true
            WHERE waiting.lane_id = %(lane)s AND waiting.subscription_id = subscription.id
                AND waiting.status = 'PENDING' AND waiting.next_attempt_at <= now()
                AND waiting.id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(waiting)}
                AND (
                    callback.origin IS NULL OR callback.origin <> ALL (%(excluded_origins)s::text[])
                )
            ORDER BY waiting.next_attempt_at
            LIMIT (SELECT rows FROM share)
        )
        UNION ALL
        (
            SELECT fresh.*, callback.url AS callback_url, callback.origin AS callback_origin
            FROM delivery_waiting fresh
            LEFT JOIN LATERAL (
                SELECT url, substring(url FROM '^[^/]+//[^/?#]*') AS origin
                FROM delivery_callback
                WHERE id = fresh.callback_id LIMIT 1
            ) AS callback ON true
            WHERE fresh.lane_id = %(lane)s AND NOT fresh.skipped
                AND fresh.subscription_id = subscription.id
                AND fresh.status = 'PENDING' AND fresh.next_attempt_at IS NULL
                AND fresh.id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(fresh)}
                AND (
                    callback.origin IS NULL OR callback.origin <> ALL (%(excluded_origins)s::text[])
                )
            -- An order that only delivery_pending has: see `test_backlog_plans`.
            ORDER BY fresh.skipped, fresh.id
            LIMIT (SELECT rows FROM share)
        )
    ) AS delivery
    WHERE subscription.id <> ALL (%(excluded)s::bigint[])
    ORDER BY turn, random()
    LIMIT %(most)s::bigint
), sized AS (
    SELECT
        due.*, message.event_type_id, message.content_type, message.body, message.published_at, (
            SELECT onward.id
            FROM delivery_callback onward
            WHERE due.callback_id IS NOT NULL AND onward.message_id = due.message_id
        ) AS onward_id,
        {headers_to_send(forwarding.id = due.subscription_id)} AS headers,
        sum(octet_length(message.body)) OVER (
            ORDER BY due.turn, due.next_attempt_at NULLS LAST, due.id
        )
            - octet_length(message.body) AS bytes_before
    FROM due
    CROSS JOIN LATERAL (
        SELECT event_type_id, headers, content_type, body, published_at
        FROM delivery_message WHERE id = due.message_id LIMIT 1
    ) AS message
)
SELECT
    sized.id, sized.subscription_id, sized.message_id, NULL::smallint AS queue_group,
    sized.attempts, sized.attempts_before, sized.skipped, sized.redelivery, sized.replay_id,
    event_type.name AS event, sized.content_type, sized.body, sized.headers, sized.callback_url,
    sized.callback_origin, sized.onward_id AS callback_id, share.rows AS share,
    sized.server_started_at, extract(epoch FROM sized.expires_at - now())::float8 AS seconds_left,
    -- Since the moment when the attempt was due, if a row has it.
    CASE WHEN %(is_traced)s::boolean THEN
        extract(epoch FROM now() - CASE
            WHEN sized.attempts > 0 THEN sized.next_attempt_at
            WHEN sized.redelivery = '' AND sized.replay_id IS NULL THEN sized.published_at
        END)::float8
    END AS seconds_due,
    extract(epoch FROM now() - (
        SELECT attempt.started_at
        FROM delivery_loggedattempt attempt
        WHERE attempt.delivery_id = sized.id AND attempt.number = sized.attempts_before + 1
    ))::float8 AS seconds_since_first
FROM sized
CROSS JOIN share
JOIN subscriptions_eventtype event_type ON event_type.id = sized.event_type_id
WHERE sized.bytes_before < %(bytes)s
ORDER BY sized.next_attempt_at NULLS LAST, sized.id
