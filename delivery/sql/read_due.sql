-- What is due in the retry lane or the callback lane: of each subscription what was put off until now, first due first,
-- and what was never tried. Finds the subscriptions by jumping on delivery_pending, and reads theirs on
-- delivery_due, so that what is not due costs nothing, however much it is. Each gets its share of the rows.
WITH RECURSIVE places AS (
    (
        SELECT skipped, subscription_id
        FROM delivery_delivery
        WHERE status = 'PENDING' AND lane_id = %(lane)s
        ORDER BY skipped, subscription_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.*
    FROM places
    CROSS JOIN LATERAL (
        SELECT skipped, subscription_id
        FROM delivery_delivery
        WHERE status = 'PENDING' AND lane_id = %(lane)s
            AND (skipped, subscription_id) > (places.skipped, places.subscription_id)
        ORDER BY skipped, subscription_id
        LIMIT 1
    ) AS following
), due AS (
    SELECT delivery.*
    FROM (SELECT DISTINCT subscription_id FROM places) AS place
    JOIN delivery_sendable subscription ON subscription.id = place.subscription_id
    CROSS JOIN LATERAL (
        (
            SELECT id, message_id, subscription_id, attempts, attempts_before, skipped, redelivery, callback_id, next_attempt_at
            FROM delivery_delivery
            WHERE lane_id = %(lane)s AND subscription_id = subscription.id AND status = 'PENDING'
                AND next_attempt_at <= now() AND id <> ALL (%(held)s::bigint[])
            ORDER BY next_attempt_at
            LIMIT greatest(%(rows)s / (SELECT count(DISTINCT subscription_id) FROM places), 4)
        )
        UNION ALL
        (
            SELECT id, message_id, subscription_id, attempts, attempts_before, skipped, redelivery, callback_id, NULL
            FROM delivery_delivery
            WHERE lane_id = %(lane)s AND NOT skipped AND subscription_id = subscription.id AND status = 'PENDING'
                AND next_attempt_at IS NULL AND id <> ALL (%(held)s::bigint[])
            ORDER BY id
            LIMIT greatest(%(rows)s / (SELECT count(DISTINCT subscription_id) FROM places), 4)
        )
    ) AS delivery
    WHERE subscription.id <> ALL (%(excluded)s::bigint[])
), sized AS (
    SELECT
        due.*, message.event_type_id, message.content_type, message.body, callback.url AS callback_url, (
            SELECT onward.id
            FROM delivery_callback onward
            WHERE due.callback_id IS NOT NULL AND onward.message_id = due.message_id
        ) AS onward_id,
        sum(octet_length(message.body)) OVER (ORDER BY due.next_attempt_at NULLS LAST, due.id)
            - octet_length(message.body) AS bytes_before
    FROM due
    JOIN delivery_message message ON message.id = due.message_id
    LEFT JOIN delivery_callback callback ON callback.id = due.callback_id
    WHERE callback.id IS NULL OR callback.url <> ALL (%(excluded_urls)s::text[])
)
SELECT
    sized.id, sized.subscription_id, sized.message_id, NULL::smallint AS queue_group, sized.attempts,
    sized.attempts_before, sized.skipped, sized.redelivery, event_type.name AS event, sized.content_type,
    sized.body, sized.callback_url, sized.onward_id AS callback_id,
    extract(epoch FROM now() - (
        SELECT attempt.started_at
        FROM delivery_attempt attempt
        WHERE attempt.delivery_id = sized.id AND attempt.number = sized.attempts_before + 1
    ))::float8 AS seconds_since_first
FROM sized
JOIN subscriptions_eventtype event_type ON event_type.id = sized.event_type_id
WHERE sized.bytes_before < %(bytes)s
ORDER BY sized.next_attempt_at NULLS LAST, sized.id
