-- What a queue sender may send: of the oldest QUEUE messages of its lane the PENDING deliveries, group by group.
-- One probe of delivery_pending a subscription, so that what an INACTIVE one holds, or only endpoints that are
-- down could take, is never scanned. What failed in an earlier cycle comes after its pause, at most half as much.
-- A group of which one is held IN_DOUBT is left alone; it is looked for by message, so no index of statuses may
-- offer itself. The body stands in the first row of a group only.
WITH picked AS (
    SELECT delivery.message_id, delivery.queue_group
    FROM subscriptions_eventtype event_type
    JOIN delivery_sendable subscription ON subscription.event_type_id = event_type.id
    CROSS JOIN LATERAL (
        (
            SELECT message_id, queue_group
            FROM delivery_delivery waiting
            WHERE lane_id = %(lane)s AND NOT skipped AND subscription_id = subscription.id
                AND status = 'PENDING' AND id <> ALL (%(held)s::bigint[])
                AND (expires_at IS NULL OR expires_at > now())
                AND (server_started_at IS NULL OR server_started_at = pg_postmaster_start_time())
                AND NOT EXISTS (
                    SELECT FROM delivery_delivery settled
                    WHERE settled.message_id = waiting.message_id AND settled.queue_group = waiting.queue_group
                        AND settled.status || '' IN ('DELIVERED', 'IN_DOUBT')
                )
            ORDER BY id
            LIMIT %(rows)s
        )
        UNION ALL
        (
            SELECT message_id, queue_group
            FROM delivery_delivery waiting
            WHERE lane_id = %(lane)s AND skipped AND subscription_id = subscription.id
                AND status = 'PENDING' AND id <> ALL (%(held)s::bigint[])
                AND (expires_at IS NULL OR expires_at > now())
                AND (server_started_at IS NULL OR server_started_at = pg_postmaster_start_time())
                AND (next_attempt_at IS NULL OR next_attempt_at <= now())
                AND NOT EXISTS (
                    SELECT FROM delivery_delivery settled
                    WHERE settled.message_id = waiting.message_id AND settled.queue_group = waiting.queue_group
                        AND settled.status || '' IN ('DELIVERED', 'IN_DOUBT')
                )
            ORDER BY id
            LIMIT greatest(%(rows)s / 2, 1)
        )
    ) AS delivery
    WHERE event_type.kind = 'QUEUE' AND subscription.id <> ALL (%(excluded)s::bigint[])
    GROUP BY delivery.message_id, delivery.queue_group
), sized AS (
    SELECT
        picked.*, message.event_type_id, message.content_type, message.body, (
            SELECT callback.id
            FROM delivery_callback callback
            WHERE callback.message_id = picked.message_id AND callback.queue_group = picked.queue_group
        ) AS callback_id,
        sum(octet_length(message.body)) OVER (ORDER BY picked.message_id, picked.queue_group)
            - octet_length(message.body) AS bytes_before
    FROM picked
    JOIN delivery_message message ON message.id = picked.message_id
)
SELECT
    delivery.id, delivery.subscription_id, delivery.message_id, delivery.queue_group, delivery.attempts,
    delivery.attempts_before, delivery.skipped, delivery.redelivery, delivery.replay_id, event_type.name AS event,
    sized.content_type, sized.callback_id, %(rows)s::int AS share, delivery.server_started_at,
    extract(epoch FROM delivery.expires_at - now())::float8 AS seconds_left,
    CASE WHEN row_number() OVER (PARTITION BY delivery.message_id, delivery.queue_group ORDER BY delivery.id) = 1
        THEN sized.body END AS body
FROM sized
JOIN delivery_delivery delivery
    ON delivery.message_id = sized.message_id AND delivery.queue_group = sized.queue_group
    AND delivery.status = 'PENDING'
    AND (delivery.expires_at IS NULL OR delivery.expires_at > now())
    AND (delivery.server_started_at IS NULL OR delivery.server_started_at = pg_postmaster_start_time())
JOIN subscriptions_eventtype event_type ON event_type.id = sized.event_type_id
WHERE sized.bytes_before < %(bytes)s
ORDER BY delivery.message_id, delivery.queue_group, delivery.id
