-- The facts about the objects of some incidents now: names, the head or last failure, and the
-- waiting deliveries, counted up to a limit on delivery_pending.
SELECT
    incident.id,
    CASE WHEN lane.id IS NULL THEN NULL ELSE coalesce(
        owner.name, lower(lane.kind) || ':' || lane.number
    ) END AS lane,
    lane.state AS lane_state, subscriber.id AS subscriber_id,
    coalesce(subscriber.name, owner.name) AS subscriber, subscription.id AS subscription_id,
    subscription.name AS subscription, subscription.endpoint, event_type.name AS event,
    delivery.id AS delivery_id, delivery.message_id, delivery.status, delivery.attempts,
    CASE
        WHEN incident.kind = 'LANE' THEN coalesce(nullif(lane.reason, ''), delivery.reason)
        WHEN incident.kind = 'ENDPOINT' THEN health.reason
        ELSE delivery.reason
    END AS reason,
    CASE
        WHEN incident.kind = 'LANE' THEN lane.next_try_at
        WHEN incident.kind = 'ENDPOINT' THEN health.next_try_at
        WHEN incident.kind = 'URL' THEN url.next_probe_at
    END AS next_try_at,
    url.state AS url_state, url.failures_in_row,
    CASE
        WHEN incident.kind IN ('LANE', 'OLDEST') THEN (
            SELECT count(*) FROM (
                SELECT
                FROM delivery_waiting waiting
                WHERE waiting.lane_id = incident.lane_id AND waiting.status = 'PENDING'
                LIMIT %(limit)s + 1
            ) AS counted
        )
        WHEN incident.kind IN ('ENDPOINT', 'RETRYING', 'FAILURES') THEN (
            SELECT count(*) FROM (
                SELECT
                FROM (
                    SELECT id FROM delivery_lane WHERE subscriber_id = subscription.subscriber_id
                    UNION ALL
                    SELECT id FROM delivery_lane WHERE kind <> 'TOPIC'
                ) AS place
                JOIN delivery_waiting waiting
                    ON waiting.lane_id = place.id
                        AND waiting.skipped = ANY ('{f,t}'::boolean[])
                        AND waiting.subscription_id = incident.subscription_id
                        AND waiting.status = 'PENDING'
                LIMIT %(limit)s + 1
            ) AS counted
        )
        WHEN incident.kind = 'BACKLOG' THEN (
            SELECT count(*) FROM (
                SELECT
                FROM delivery_waiting waiting
                WHERE waiting.status = 'PENDING' AND waiting.lane_id IS NOT NULL
                LIMIT %(limit)s + 1
            ) AS counted
        )
    END AS waiting
FROM delivery_incident incident
LEFT JOIN delivery_delivery delivery ON delivery.id = incident.delivery_id
LEFT JOIN delivery_message message ON message.id = delivery.message_id
LEFT JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
LEFT JOIN subscriptions_subscription subscription
    ON subscription.id = coalesce(incident.subscription_id, delivery.subscription_id)
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
LEFT JOIN delivery_lane lane ON lane.id = incident.lane_id
LEFT JOIN subscriptions_subscriber owner ON owner.id = lane.subscriber_id
LEFT JOIN delivery_endpointhealth health
    ON incident.kind = 'ENDPOINT' AND health.subscription_id = incident.subscription_id
LEFT JOIN delivery_urlhealth url ON incident.kind = 'URL' AND url.url = incident.url
WHERE incident.id = ANY (%(ids)s::bigint[])
