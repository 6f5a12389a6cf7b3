-- The lanes that belong to no subscriber, each with the oldest delivery in it that nothing stops,
-- and whether it is SLOW: its turn came longer ago than the incident rule allows. Jumps from
-- subscription to subscription on delivery_pending.
WITH RECURSIVE places AS (
    SELECT lane.id AS lane_id, lane.kind, first.skipped, first.subscription_id, first.id
    FROM delivery_lane lane
    CROSS JOIN LATERAL (
        SELECT skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = lane.id
        ORDER BY skipped, subscription_id, id
        LIMIT 1
    ) AS first
    WHERE lane.kind <> 'TOPIC'
    UNION ALL
    SELECT places.lane_id, places.kind, following.skipped, following.subscription_id, following.id
    FROM places
    CROSS JOIN LATERAL (
        SELECT skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = places.lane_id
            AND (skipped, subscription_id) > (places.skipped, places.subscription_id)
        ORDER BY skipped, subscription_id, id
        LIMIT 1
    ) AS following
), oldest AS (
    SELECT
        places.lane_id, min(places.id) AS id,
        coalesce(min(places.id) FILTER (WHERE places.kind = 'QUEUE' AND NOT places.skipped) < (
            SELECT (message.id + 1) << 20
            FROM delivery_message message
            WHERE message.published_at < statement_timestamp() - (
                SELECT make_interval(secs => bound) FROM delivery_incidentrule WHERE kind = 'OLDEST'
            )
            ORDER BY message.published_at DESC
            LIMIT 1
        ), false) AS is_slow
    FROM places
    CROSS JOIN LATERAL (
        SELECT state FROM delivery_subscriptionstop
        WHERE subscription_id = places.subscription_id
        LIMIT 1
    ) AS stop
    WHERE stop.state IS NULL
    GROUP BY places.lane_id
)
SELECT oldest.lane_id, oldest.is_slow, message.published_at AS oldest_at
FROM oldest
LEFT JOIN LATERAL (
    SELECT published_at FROM delivery_message WHERE id = oldest.id >> 20 LIMIT 1
) AS message ON true
