-- The groups of QUEUE event types that have waiting messages and no endpoint that is UP, without
-- held ones: one row an endpoint, with the group's oldest message, and the number of messages
-- waiting for the endpoint that has it, counted up to a limit.
WITH endpoints AS (
    SELECT
        subscription.*, event_type.name AS event, summary.reason, summary.next_try_at,
        bool_and(summary.state <> 'UP') OVER (
            PARTITION BY subscription.event_type_id, subscription.header_filter_string,
                subscription.filter_identity
        ) AS is_group_down
    FROM subscriptions_eventtype event_type
    JOIN subscriptions_subscription subscription
        ON subscription.event_type_id = event_type.id AND subscription.status <> 'INACTIVE'
    JOIN subscriptions_standing standing
        ON standing.id = subscription.id AND standing.status = 'ACTIVE'
    JOIN delivery_endpointsummary summary ON summary.subscription_id = subscription.id
    WHERE event_type.kind = 'QUEUE' AND (
        -- Evaluated once: while all endpoints are UP, this is the whole cost.
        EXISTS (SELECT FROM delivery_endpointhealth)
        OR EXISTS (SELECT FROM delivery_urlhealth WHERE state <> 'ENABLED')
    )
), down AS (
    SELECT DISTINCT ON (event_type_id, header_filter_string, filter_identity)
        endpoints.*, oldest.id AS oldest_id
    FROM endpoints
    CROSS JOIN delivery_lane lane
    CROSS JOIN unnest('{f,t}'::boolean[]) AS place (skipped)
    CROSS JOIN LATERAL (
        SELECT id
        FROM delivery_waiting
        WHERE lane_id = lane.id AND skipped = place.skipped AND subscription_id = endpoints.id
            AND status = 'PENDING'
        ORDER BY id
        LIMIT 1
    ) AS oldest
    WHERE endpoints.is_group_down AND lane.kind = 'QUEUE'
    ORDER BY event_type_id, header_filter_string, filter_identity, oldest.id
)
SELECT
    endpoints.event_type_id, endpoints.event, header_filter_string, filter_identity,
    message.id AS message_id, message.published_at AS oldest_at, endpoints.id AS subscription_id,
    subscriber.name || '/' || endpoints.name AS subscription, endpoints.endpoint, endpoints.reason,
    endpoints.next_try_at,
    (
        SELECT count(*) FROM (
            SELECT
            FROM delivery_lane lane
            JOIN delivery_waiting waiting
                ON waiting.lane_id = lane.id AND waiting.skipped = ANY ('{f,t}'::boolean[])
                AND waiting.subscription_id = first.id AND waiting.status = 'PENDING'
            WHERE lane.kind = 'QUEUE'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM (SELECT * FROM down ORDER BY oldest_id LIMIT %(rows)s) AS first
JOIN endpoints USING (event_type_id, header_filter_string, filter_identity)
JOIN delivery_message message ON message.id = first.oldest_id >> 20
JOIN subscriptions_subscriber subscriber ON subscriber.id = endpoints.subscriber_id
ORDER BY first.oldest_id, endpoints.id
