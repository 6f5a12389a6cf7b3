-- The deliveries of the messages with ids from %(first)s to %(last)s, each as a sender, a
-- subscriber or a person left it.
INSERT INTO delivery_delivery (
    id, message_id, subscription_id, lane_id, queue_group, status, attempts, skipped, redelivery,
    reason, next_attempt_at, settled_at, leased_at, lease_token, lease_expires_at, receive_count,
    started_at, duration_ms, status_code
)
WITH owed AS (
    SELECT
        message.id AS message_id, message.published_at, plan.*,
        CASE
            WHEN plan.kind = 'QUEUE' THEN CASE
                WHEN plan.fate = 'DOWN' AND message.published_at >= plan.since THEN 'PENDING'
                WHEN turn = message.id %% 3 THEN 'DELIVERED'
                ELSE 'REDUNDANT'
            END
            WHEN message.published_at >= plan.since THEN CASE
                WHEN plan.mode = 'PULL' AND chance.of_status < 0.02 THEN 'IN_FLIGHT'
                ELSE 'PENDING'
            END
            WHEN plan.fate = 'FAILING' AND chance.of_status < 0.01
                AND message.published_at > %(now)s - interval '90 minutes' THEN 'PENDING'
            WHEN chance.of_status < 0.976 THEN 'DELIVERED'
            WHEN chance.of_status < 0.986 THEN 'REJECTED'
            WHEN chance.of_status < 0.991 THEN 'FAILED'
            WHEN chance.of_status < 0.994 THEN 'DUPLICATE'
            WHEN chance.of_status < 0.996 THEN 'EXPIRED'
            WHEN chance.of_status < 0.998 THEN 'CANCELLED'
            WHEN chance.of_status < 0.9995 THEN '3xxNOTSUPPORTED'
            ELSE 'IN_DOUBT'
        END AS status,
        chance.*
    FROM delivery_message message
    JOIN many_event_type event_type ON event_type.event_type_id = message.event_type_id
    CROSS JOIN LATERAL (SELECT abs(hashint8extended(message.id, 1)) AS hash) AS hashed
    CROSS JOIN LATERAL generate_series(0, least(event_type.subscriptions, CASE
        WHEN event_type.kind = 'QUEUE' THEN 3
        WHEN hash %% 100 < 3 THEN 0
        WHEN hash %% 100 < 20 THEN 1
        WHEN hash %% 100 < 45 THEN 2
        WHEN hash %% 100 < 70 THEN 3
        WHEN hash %% 100 < 88 THEN 4
        ELSE 6
    END) - 1) AS turn
    JOIN many_subscription plan ON plan.event_type_id = message.event_type_id AND plan.place = CASE
        WHEN event_type.kind = 'QUEUE'
            THEN right(message.headers ->> 'filter-string', 1)::int * 3 + turn
        ELSE (hash / 100 + turn) %% event_type.subscriptions
    END
    CROSS JOIN LATERAL (
        SELECT
            random() AS of_status, random() AS of_attempts, random() AS of_time,
            random() AS of_lease
        -- The condition depends on the row, so each delivery gets other random numbers.
        WHERE message.id IS NOT NULL AND plan.id IS NOT NULL AND turn IS NOT NULL
    ) AS chance
    WHERE message.id BETWEEN %(first)s AND %(last)s
        -- An INACTIVE subscription holds messages of the last two hours; later messages do not
        -- match it.
        AND (plan.fate <> 'INACTIVE' OR message.published_at < plan.since + interval '2 hours')
), tried AS (
    SELECT
        owed.*,
        CASE
            WHEN status = 'DELIVERED'
                THEN CASE WHEN of_attempts < 0.94 THEN 1 WHEN of_attempts < 0.98 THEN 2 ELSE 3 END
            WHEN status IN ('REJECTED', '3xxNOTSUPPORTED', 'IN_DOUBT') THEN 1
            WHEN status = 'FAILED' THEN CASE WHEN is_retried_apart THEN 12 ELSE 5 END
            WHEN status = 'CANCELLED' THEN 3
            WHEN status = 'PENDING' AND fate = 'FAILING' THEN 1 + floor(of_attempts * 10)::int
            WHEN status = 'PENDING' AND fate = 'DOWN' THEN 4
            ELSE 0
        END AS attempts
    FROM owed
)
SELECT
    message_id << 20 | (row_number() OVER (PARTITION BY message_id ORDER BY id) - 1), message_id,
    id,
    CASE
        WHEN mode = 'PULL' THEN NULL
        WHEN kind = 'QUEUE' THEN (%(queue_lanes)s::bigint[])[1 + message_id %% 5]
        WHEN status = 'PENDING' AND fate = 'FAILING' THEN %(retry_lane)s
        ELSE lane_id
    END,
    CASE WHEN kind = 'QUEUE' THEN 0 END,
    status, attempts, status = 'PENDING' AND attempts > 0, '',
    CASE status
        WHEN 'DELIVERED' THEN CASE WHEN attempts > 1 THEN '200 OK' ELSE '' END
        WHEN 'REJECTED' THEN '404 Not Found'
        WHEN 'FAILED' THEN '500 Internal Server Error'
        WHEN '3xxNOTSUPPORTED' THEN '301 Moved Permanently'
        WHEN 'IN_DOUBT' THEN 'a sender died after sending it'
        WHEN 'CANCELLED' THEN '503 Service Unavailable'
        WHEN 'PENDING'
            THEN CASE WHEN attempts > 0 THEN 'unreachable: connection refused' ELSE '' END
        ELSE ''
    END,
    CASE
        WHEN status = 'PENDING' AND attempts > 0
            THEN %(now)s + interval '10 minutes' * (of_time - 0.1)
    END,
    CASE WHEN status NOT IN ('PENDING', 'IN_FLIGHT') THEN
        least(
            %(now)s,
            published_at
                + interval '1 second' * (0.02 + of_time + pow(greatest(attempts, 1) - 1, 2) * 30)
        )
    END,
    CASE WHEN status = 'IN_FLIGHT' THEN %(now)s - interval '10 seconds' * of_lease END,
    CASE WHEN status = 'IN_FLIGHT' THEN gen_random_uuid() END,
    CASE WHEN status = 'IN_FLIGHT' THEN %(now)s + interval '30 seconds' * (of_lease - 0.3) END,
    CASE
        WHEN mode = 'PULL' AND status NOT IN ('PENDING', 'EXPIRED') THEN greatest(attempts, 1)
        ELSE 0
    END,
    -- The successful attempt, unless it was a fetch.
    CASE WHEN is_sent THEN
        published_at + interval '30 seconds' * pow(attempts - 1, 2) + interval '15 milliseconds'
    END,
    CASE WHEN is_sent THEN 5 + (message_id * 31 + attempts * 7 + id) %% 900 END,
    CASE WHEN is_sent THEN 200 END
FROM tried
CROSS JOIN LATERAL (SELECT status = 'DELIVERED' AND mode <> 'PULL' AS is_sent) AS sent
ORDER BY message_id, id
