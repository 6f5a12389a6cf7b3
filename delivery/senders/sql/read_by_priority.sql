-- The due deliveries of a CONCURRENT subscriber's lane whose messages have priorities.
-- Like `read_due.sql` for deliveries postponed until now, and for the shares of subscriptions. The
-- deliveries never tried are sent by a rule that leaves none waiting for ever: of four, three are
-- those of the highest priority, the older first, and the fourth is the oldest one. So the limit
-- keeps a quarter of the rows for the oldest of the lane, whatever their subscription. A delivery
-- without a priority is from before the subscriber sent by priority, of a replay, or sent again: it
-- is found by its age, and counts as 4.
WITH RECURSIVE places AS (
    {places_of_lane}
), found AS (
    SELECT delivery.*
    FROM (SELECT DISTINCT subscription_id FROM places) AS place
    JOIN delivery_sendable subscription ON subscription.id = place.subscription_id
    CROSS JOIN LATERAL (
        (
            SELECT id, subscription_id, next_attempt_at, 4::smallint AS priority
            FROM delivery_waiting
            WHERE lane_id = %(lane)s AND subscription_id = subscription.id
                AND status = 'PENDING' AND next_attempt_at <= now()
                AND id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(delivery_waiting)}
            ORDER BY next_attempt_at
            LIMIT %(rows)s
        )
        UNION
        (
            SELECT id, subscription_id, next_attempt_at, coalesce(priority, 4::smallint)
            FROM delivery_waiting
            WHERE lane_id = %(lane)s AND NOT skipped AND subscription_id = subscription.id
                AND status = 'PENDING' AND next_attempt_at IS NULL
                AND id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(delivery_waiting)}
            -- An order that only delivery_pending has: see `test_backlog_plans`.
            ORDER BY skipped, id
            LIMIT %(rows)s
        )
        UNION
        (
            SELECT id, subscription_id, next_attempt_at, priority
            FROM delivery_waiting
            WHERE lane_id = %(lane)s AND subscription_id = subscription.id
                AND status = 'PENDING' AND priority IS NOT NULL AND next_attempt_at IS NULL
                AND id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(delivery_waiting)}
            ORDER BY priority DESC, id
            LIMIT %(rows)s
        )
    ) AS delivery
    WHERE subscription.id <> ALL (%(excluded)s::bigint[])
), ranked AS (
    SELECT
        found.*,
        row_number() OVER (
            PARTITION BY subscription_id, next_attempt_at IS NULL
            ORDER BY next_attempt_at, priority DESC, id
        ) AS by_priority,
        CASE WHEN next_attempt_at IS NULL THEN
            row_number() OVER (PARTITION BY next_attempt_at IS NULL ORDER BY id)
        END AS by_age
    FROM found
), placed AS (
    -- Three turns by priority, then one by age. Deliveries postponed until now have each turn.
    SELECT
        ranked.*,
        CASE
            WHEN next_attempt_at IS NULL THEN least(by_priority + (by_priority - 1) / 3, 4 * by_age)
            ELSE by_priority
        END AS turn
    FROM ranked
), due AS (
    SELECT *
    FROM placed
    ORDER BY coalesce(4 * by_age <= %(most)s::bigint, false) DESC, turn, random()
    LIMIT %(most)s::bigint
), sized AS (
    SELECT
        delivery.*, due.turn, message.event_type_id, message.content_type, message.body,
        message.published_at,
        {headers_to_send(forwarding.id = due.subscription_id)} AS headers,
        sum(octet_length(message.body)) OVER (ORDER BY due.turn, delivery.id)
            - octet_length(message.body) AS bytes_before
    FROM due
    CROSS JOIN LATERAL (SELECT * FROM delivery_waiting WHERE id = due.id LIMIT 1) AS delivery
    CROSS JOIN LATERAL (
        SELECT event_type_id, headers, content_type, body, published_at
        FROM delivery_message WHERE id = delivery.message_id LIMIT 1
    ) AS message
)
SELECT
    sized.id, sized.subscription_id, sized.message_id, NULL::smallint AS queue_group,
    sized.attempts, sized.attempts_before, sized.skipped, sized.redelivery, sized.replay_id,
    event_type.name AS event, sized.content_type, sized.body, sized.headers,
    %(rows)s::bigint AS share, sized.server_started_at,
    extract(epoch FROM sized.expires_at - now())::float8 AS seconds_left,
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
JOIN subscriptions_eventtype event_type ON event_type.id = sized.event_type_id
WHERE sized.bytes_before < %(bytes)s
ORDER BY sized.turn, sized.id
