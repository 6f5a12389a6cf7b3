-- The groups of QUEUE event types that are STOPPED, with waiting messages: a row for each sendable
-- endpoint, with the group's oldest message, and the number of messages waiting for the endpoint
-- with it, counted up to a limit. Begins with the endpoints not UP: the cost grows with their
-- number, not with the subscriptions'.
WITH stopped AS (
    SELECT subscription_id FROM delivery_endpointhealth
    UNION
    SELECT subscription.id
    FROM delivery_urlhealth health
    JOIN subscriptions_subscription subscription
        ON subscriptions_url(subscription.endpoint) = health.url
    WHERE health.state <> 'ENABLED'
), candidates AS (
    SELECT DISTINCT event_type.id AS event_type_id, event_type.name, header_filter_string,
        filter_identity
    FROM stopped
    JOIN subscriptions_subscription subscription ON subscription.id = stopped.subscription_id
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    WHERE event_type.kind = 'QUEUE' AND subscription.status <> 'INACTIVE'
), endpoints AS (
    SELECT
        subscription.*, candidates.name AS event, stop.reason, stop.next_try_at,
        bool_and(stop.state IS NOT NULL) OVER (
            PARTITION BY subscription.event_type_id, subscription.header_filter_string,
                subscription.filter_identity
        ) AS is_group_down
    FROM candidates
    JOIN subscriptions_subscription subscription
        USING (event_type_id, header_filter_string, filter_identity)
    CROSS JOIN LATERAL (
        SELECT state, reason, next_try_at FROM delivery_subscriptionstop
        WHERE subscription_id = subscription.id
        LIMIT 1
    ) AS stop
    WHERE stop.state IS NULL OR stop.state IN ('STOPPED', 'DOWN')
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
