-- How a subscription, a subscriber, a queue group and a mailbox stand: `delivery/standing/README.md`
-- has the words, their order and what leads to each.

-- The lanes that are stopped: BLOCKED by a delivery that still waits and may be sent, or SUSPENDED.
-- A BLOCKED lane whose delivery was settled or held since is about to continue. The lane of a
-- CONCURRENT subscriber stops nobody: it describes an endpoint that is DOWN, and the others go on.
CREATE VIEW delivery_stoppedlane AS
SELECT
    lane.id AS lane_id, lane.subscriber_id,
    CASE WHEN subscriber.processing = 'CONCURRENT' THEN 'DOWN' ELSE 'STOPPED' END AS state,
    lane.state AS cause, lane.since, lane.reason, lane.next_try_at, lane.delivery_id
FROM delivery_lane lane
JOIN subscriptions_subscriber subscriber
    ON subscriber.id = lane.subscriber_id AND subscriber.status = 'ACTIVE'
WHERE lane.state IN ('BLOCKED', 'SUSPENDED')
    AND NOT EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD')
    AND (lane.state = 'SUSPENDED' OR EXISTS (
        SELECT
        FROM (
            SELECT subscription_id, status FROM delivery_delivery WHERE id = lane.delivery_id LIMIT 1
        ) AS head
        JOIN subscriptions_standing standing
            ON standing.id = head.subscription_id AND standing.status = 'ACTIVE'
        WHERE head.status = 'PENDING'
            OR subscriber.processing = 'CONCURRENT' AND head.status <> 'CANCELLED'
    ));

-- What stops a subscription, whether or not anything waits for it: the first that is true of a
-- person's decision, its URL, its lane and its endpoint. `state` and `cause` are null if nothing
-- does.
CREATE VIEW delivery_subscriptionstop AS
SELECT
    subscription.id AS subscription_id,
    CASE
        WHEN standing.status IN ('INACTIVE', 'SHADOW') THEN 'INACTIVE'
        WHEN standing.status = 'HELD' OR subscription.cancellation_id IS NOT NULL THEN 'HELD'
        WHEN endpoint.url IS NOT NULL OR lane.lane_id IS NOT NULL THEN 'STOPPED'
        WHEN endpoint.state = 'DOWN' THEN 'DOWN'
    END AS state,
    CASE
        WHEN standing.status <> 'ACTIVE' THEN standing.status
        WHEN subscription.cancellation_id IS NOT NULL THEN 'CANCELLING'
        WHEN endpoint.url IS NOT NULL THEN endpoint.state
        WHEN lane.lane_id IS NOT NULL THEN lane.cause
        ELSE endpoint.state
    END AS cause,
    CASE
        WHEN standing.status <> 'ACTIVE' OR subscription.cancellation_id IS NOT NULL THEN NULL
        WHEN endpoint.url IS NOT NULL OR lane.lane_id IS NULL THEN endpoint.since
        ELSE lane.since
    END AS since,
    CASE
        WHEN standing.status <> 'ACTIVE' OR subscription.cancellation_id IS NOT NULL THEN ''
        WHEN endpoint.url IS NOT NULL OR lane.lane_id IS NULL THEN coalesce(endpoint.reason, '')
        ELSE lane.reason
    END AS reason,
    CASE
        WHEN standing.status <> 'ACTIVE' OR subscription.cancellation_id IS NOT NULL THEN NULL
        WHEN endpoint.url IS NOT NULL OR lane.lane_id IS NULL THEN endpoint.next_try_at
        ELSE lane.next_try_at
    END AS next_try_at,
    CASE
        WHEN standing.status = 'ACTIVE' AND endpoint.url IS NULL THEN lane.delivery_id
    END AS delivery_id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN subscriptions_standing standing ON standing.id = subscription.id
LEFT JOIN delivery_endpointsummary endpoint
    ON endpoint.subscription_id = subscription.id AND endpoint.state <> 'UP'
LEFT JOIN delivery_stoppedlane lane
    ON lane.subscriber_id = subscription.subscriber_id AND lane.state = 'STOPPED'
        AND subscription.mode = 'PUSH' AND event_type.kind = 'TOPIC';

-- How each subscription stands. `oldest_id` is its oldest open delivery, held ones included. It is
-- SLOW by those whose turn it is: neither retries nor those of a lane that catches up. Each part of
-- the union is one probe of an index; the LIMITs keep the planner from reading a whole one.
CREATE VIEW delivery_subscriptionstanding AS
WITH shared AS MATERIALIZED (
    SELECT lane.id, lane.kind, kind.skipped
    FROM delivery_lane lane
    CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
    WHERE lane.kind <> 'TOPIC'
), slow AS MATERIALIZED (
    SELECT (
        SELECT (message.id + 1) << 20
        FROM delivery_message message
        WHERE message.published_at < statement_timestamp() - (
            SELECT make_interval(secs => bound) FROM delivery_incidentrule WHERE kind = 'OLDEST'
        )
        ORDER BY message.published_at DESC
        LIMIT 1
    ) AS before_id
)
SELECT
    subscription.id AS subscription_id, subscription.subscriber_id, subscription.event_type_id,
    subscription.mode, subscription.header_filter_string, subscription.filter_identity,
    coalesce(stop.state, CASE
        WHEN waiting.oldest_id IS NULL THEN 'QUIET'
        WHEN waiting.next_id < (SELECT before_id FROM slow) THEN 'SLOW'
        ELSE 'MOVING'
    END) AS state,
    stop.cause, stop.since, stop.reason, stop.next_try_at, stop.delivery_id, waiting.oldest_id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_subscriptionstop stop ON stop.subscription_id = subscription.id
CROSS JOIN LATERAL (
    SELECT min(id) AS oldest_id, min(id) FILTER (WHERE is_next) AS next_id
    FROM (
        SELECT oldest.id, NOT kind.skipped AND own.catch_up_to IS NULL AS is_next
        FROM (
            SELECT id, catch_up_to
            FROM delivery_lane
            WHERE subscriber_id = subscription.subscriber_id AND event_type.kind <> 'QUEUE'
                AND subscription.mode = 'PUSH'
            LIMIT 1
        ) AS own
        CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_waiting
            WHERE lane_id BETWEEN own.id AND own.id AND skipped = kind.skipped
                AND subscription_id = subscription.id AND status = 'PENDING'
            ORDER BY lane_id, skipped, subscription_id, id
            LIMIT 1
        ) AS oldest
        UNION ALL
        SELECT oldest.id, NOT shared.skipped AND shared.kind = 'QUEUE'
        FROM shared
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_waiting
            WHERE lane_id BETWEEN shared.id AND shared.id
                AND skipped = shared.skipped AND subscription_id = subscription.id AND status = 'PENDING'
            ORDER BY lane_id, skipped, subscription_id, id
            LIMIT 1
        ) AS oldest
        WHERE subscription.mode = 'PUSH' AND event_type.kind <> 'SYNC'
            AND (shared.kind = 'QUEUE') = (event_type.kind = 'QUEUE')
        UNION ALL
        (
            SELECT id, subscription.mode = 'PULL'
            FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id
                AND (subscription.mode = 'PULL' OR subscription.join_mode = 'ALL')
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            ORDER BY subscription_id, id
            LIMIT 1
        )
        UNION ALL
        SELECT min(id), false
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND next_attempt_at >= '-infinity'
            AND subscription.mode = 'PULL'
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
        UNION ALL
        SELECT min(id), true
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND lease_expires_at >= '-infinity'
            AND subscription.mode = 'PULL' AND status = 'IN_FLIGHT'
    ) AS first
) AS waiting;

