-- The deliveries that a queue lane may send: the PENDING ones of the oldest QUEUE messages, by
-- group.
-- Finds the subscriptions by skipping along delivery_pending, so that the cost grows with the
-- subscriptions that have waiting deliveries; deliveries held by an INACTIVE or HELD subscription,
-- or acceptable only by endpoints that are down, are never scanned. Deliveries that failed in an
-- earlier cycle come after their pause, least recently tried first, at most half as many; a
-- delivery read only because of another one in its group waits for its own pause, too. Members that
-- may not be sent are left out. A group with an IN_DOUBT delivery is left alone. Only the first row
-- of a group has the body.
WITH RECURSIVE places AS (
    {places_of_lane}
), known AS MATERIALIZED (
    SELECT
        places.skipped, places.subscription_id,
        -- A subquery for each place: an EXISTS or a join would be hashed, which reads all
        -- subscriptions.
        (
            SELECT true FROM delivery_sendable sendable WHERE sendable.id = places.subscription_id
        ) IS NOT NULL AS is_sendable
    FROM places
), picked AS (
    SELECT delivery.message_id, delivery.queue_group
    FROM known AS places
    CROSS JOIN LATERAL (
        (
            SELECT message_id, queue_group
            FROM delivery_waiting waiting
            WHERE NOT places.skipped AND lane_id = %(lane)s AND NOT skipped
                AND subscription_id = places.subscription_id
                AND status = 'PENDING' AND id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(waiting)}
                AND NOT EXISTS (
                    SELECT FROM delivery_settled settled
                    WHERE settled.id BETWEEN waiting.message_id << 20
                            AND waiting.message_id << 20 | 1048575
                        AND settled.queue_group = waiting.queue_group
                        AND settled.status IN ('DELIVERED', 'IN_DOUBT')
                )
            -- An order that only delivery_pending has: see `test_backlog_plans`.
            ORDER BY skipped, id
            LIMIT %(rows)s
        )
        UNION ALL
        (
            SELECT message_id, queue_group
            FROM delivery_waiting waiting
            WHERE places.skipped AND lane_id = %(lane)s AND skipped
                AND subscription_id = places.subscription_id
                AND status = 'PENDING' AND id <> ALL (%(in_memory)s::bigint[])
                AND {is_fresh(waiting)}
                AND next_attempt_at <= now()
                AND NOT EXISTS (
                    SELECT FROM delivery_settled settled
                    WHERE settled.id BETWEEN waiting.message_id << 20
                            AND waiting.message_id << 20 | 1048575
                        AND settled.queue_group = waiting.queue_group
                        AND settled.status IN ('DELIVERED', 'IN_DOUBT')
                )
            ORDER BY next_attempt_at
            LIMIT greatest(%(rows)s / 2, 1)
        )
    ) AS delivery
    WHERE places.is_sendable AND places.subscription_id <> ALL (%(excluded)s::bigint[])
    GROUP BY delivery.message_id, delivery.queue_group
), sized AS (
    SELECT
        picked.*, message.event_type_id, message.content_type, message.body, message.published_at, (
            SELECT callback.id
            FROM delivery_callback callback
            WHERE callback.message_id = picked.message_id
                AND callback.queue_group = picked.queue_group
        ) AS callback_id,
        {headers_to_send(true)} AS headers,
        sum(octet_length(message.body)) OVER (ORDER BY picked.message_id, picked.queue_group)
            - octet_length(message.body) AS bytes_before
    FROM picked
    CROSS JOIN LATERAL (
        SELECT event_type_id, headers, content_type, body, published_at
        FROM delivery_message WHERE id = picked.message_id LIMIT 1
    ) AS message
)
SELECT
    delivery.id, delivery.subscription_id, delivery.message_id, delivery.queue_group,
    delivery.attempts, delivery.attempts_before, delivery.skipped, delivery.redelivery,
    delivery.replay_id, event_type.name AS event, sized.content_type, sized.headers,
    sized.callback_id, %(rows)s::int AS share, delivery.server_started_at,
    extract(epoch FROM delivery.expires_at - now())::float8 AS seconds_left,
    -- Since the moment when the attempt was due, if a row has it.
    CASE WHEN %(is_traced)s::boolean THEN
        extract(epoch FROM now() - CASE
            WHEN delivery.attempts > 0 THEN delivery.next_attempt_at
            WHEN delivery.redelivery = '' AND delivery.replay_id IS NULL THEN sized.published_at
        END)::float8
    END AS seconds_due,
    CASE
        WHEN row_number() OVER (
            PARTITION BY delivery.message_id, delivery.queue_group ORDER BY delivery.id
        ) = 1 THEN sized.body
    END AS body
FROM sized
JOIN delivery_waiting delivery
    ON delivery.id BETWEEN sized.message_id << 20 AND sized.message_id << 20 | 1048575
    AND delivery.queue_group = sized.queue_group
    AND delivery.status = 'PENDING'
    AND delivery.subscription_id <> ALL (
        ARRAY(SELECT subscription_id FROM known WHERE NOT is_sendable)
    )
    AND (delivery.next_attempt_at IS NULL OR delivery.next_attempt_at <= now())
    AND {is_fresh(delivery)}
JOIN subscriptions_eventtype event_type ON event_type.id = sized.event_type_id
WHERE sized.bytes_before < %(bytes)s
ORDER BY delivery.message_id, delivery.queue_group, delivery.id
