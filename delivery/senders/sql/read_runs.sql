-- The oldest PENDING deliveries of sendable subscriptions, for several lanes at once, with all that
-- sending needs. In the order of ids, or fresh ones first; skipped ones only if they were not tried
-- within `seconds`, and their subscription is not among those `resting`.
-- Reads by status, not by "id greater than the last": ids become visible out of order. Uses
-- delivery_pending, one look-up a subscription, so that deliveries held back by an INACTIVE one are
-- never scanned. Skipped deliveries are read on delivery_due, least recently tried first: read by
-- id, some that always fail would keep later ones out of every run. Headers are read only for
-- subscriptions that forward some, and of messages that were published with `ReplyTo` or are
-- replies. Expired deliveries, and VOLATILE ones of an earlier server start, are left for
-- `delivery.maintenance.expiry`.
SELECT
    wanted.number, run.id, run.subscription_id, run.attempts, run.attempts_before, run.skipped,
    run.redelivery, run.message_id, run.replay_id, event_type.name AS event, run.content_type,
    run.body, run.headers, run.server_started_at,
    extract(epoch FROM run.expires_at - now())::float8 AS seconds_left,
    -- Since the moment when the attempt was due, if a row has it.
    CASE WHEN %(is_traced)s::boolean THEN
        extract(epoch FROM now() - CASE
            WHEN run.attempts > 0 THEN greatest(
                run.next_attempt_at,
                CASE
                    WHEN lane.state = 'BLOCKED' AND lane.delivery_id = run.id THEN lane.next_try_at
                END
            )
            WHEN run.redelivery = '' AND run.replay_id IS NULL THEN run.published_at
        END)::float8
    END AS seconds_due
FROM unnest(
    %(lane)s::bigint[], %(rows)s::int[], %(fresh_rows)s::int[], %(skipped_rows)s::int[],
    %(fresh_first)s::boolean[], %(resting)s::text[], %(seconds)s::float8[], %(bytes)s::bigint[],
    %(in_memory)s::text[]
) WITH ORDINALITY AS wanted (
    lane_id, rows, fresh_rows, skipped_rows, is_fresh_first, resting, seconds, bytes, in_memory,
    number
)
JOIN delivery_lane lane ON lane.id = wanted.lane_id
CROSS JOIN LATERAL (
    SELECT
        picked.*, message.event_type_id, message.content_type, message.body,
        message.published_at,
        {headers_to_send(forwarding.id = picked.subscription_id)} AS headers,
        sum(octet_length(message.body)) OVER (ORDER BY picked.is_later, picked.id)
            - octet_length(message.body) AS bytes_before
    FROM (
        (
            SELECT delivery.*, false AS is_later
            FROM delivery_sendable subscription
            CROSS JOIN LATERAL (
                SELECT
                    id, subscription_id, message_id, attempts, attempts_before, skipped, redelivery,
                    expires_at, server_started_at, replay_id, next_attempt_at
                FROM delivery_waiting
                WHERE lane_id = wanted.lane_id AND NOT skipped AND subscription_id = subscription.id
                    AND status = 'PENDING' AND id <> ALL (wanted.in_memory::bigint[])
                    AND {is_fresh(delivery_waiting)}
                -- An order that only delivery_pending has: see `test_backlog_plans`.
                ORDER BY skipped, id
                LIMIT wanted.fresh_rows
            ) AS delivery
            WHERE subscription.subscriber_id = lane.subscriber_id
            ORDER BY delivery.id
            LIMIT wanted.fresh_rows
        )
        UNION ALL
        (
            SELECT delivery.*, wanted.is_fresh_first AS is_later
            FROM delivery_sendable subscription
            CROSS JOIN LATERAL (
                SELECT
                    id, subscription_id, message_id, attempts, attempts_before, skipped, redelivery,
                    expires_at, server_started_at, replay_id, next_attempt_at
                FROM delivery_waiting
                WHERE lane_id = wanted.lane_id AND skipped AND subscription_id = subscription.id
                    AND status = 'PENDING' AND next_attempt_at <= coalesce(
                        now() - make_interval(secs => wanted.seconds), 'infinity'
                    )
                    AND id <> ALL (wanted.in_memory::bigint[])
                    AND {is_fresh(delivery_waiting)}
                ORDER BY next_attempt_at
                LIMIT wanted.skipped_rows
            ) AS delivery
            WHERE subscription.subscriber_id = lane.subscriber_id
                AND subscription.id <> ALL (wanted.resting::bigint[])
            ORDER BY delivery.next_attempt_at
            LIMIT wanted.skipped_rows
        )
        ORDER BY is_later, id
        LIMIT wanted.rows
    ) AS picked
    CROSS JOIN LATERAL (
        SELECT event_type_id, headers, content_type, body, published_at
        FROM delivery_message WHERE id = picked.message_id LIMIT 1
    ) AS message
) AS run
JOIN subscriptions_eventtype event_type ON event_type.id = run.event_type_id
WHERE run.bytes_before < wanted.bytes
ORDER BY wanted.number, run.is_later, run.id
