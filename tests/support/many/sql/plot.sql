-- The fate of each subscription: the end of the deliveries, and the reason. `fate`: BLOCKED and
-- SUSPENDED lanes, INACTIVE subscriptions, mailboxes without a reader (UNREAD), DOWN QUEUE groups,
-- endpoints FAILING now and then and use the retry lane; the others are WELL.
CREATE TEMPORARY TABLE many_subscription ON COMMIT DROP AS
WITH numbered AS (
    SELECT
        subscription.id, subscription.event_type_id, subscription.subscriber_id, subscription.mode,
        lane.id AS lane_id, event_type.kind,
        policy.on_server_error = 'RETRY_LANE' AS is_retried_apart,
        row_number() OVER (ORDER BY subscription.subscriber_id, subscription.id) - 1 AS number,
        dense_rank() OVER (ORDER BY subscription.subscriber_id) - 1 AS subscriber_number,
        dense_rank() OVER (ORDER BY subscription.event_type_id) - 1 AS event_type_number,
        row_number() OVER (PARTITION BY subscription.event_type_id ORDER BY subscription.id)
            - 1 AS place
    FROM subscriptions_subscription subscription
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
    JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
    -- Subscriptions of others, such as a benchmark, stay empty.
    JOIN subscriptions_subscriber subscriber
        ON subscriber.id = subscription.subscriber_id AND subscriber.name LIKE 'subscriber-%%'
)
SELECT
    numbered.*, story.fate, CASE story.fate
        -- A few for days, with large backlogs; most for minutes and hours.
        WHEN 'BLOCKED' THEN %(now)s - interval '7 minutes' * pow(1.5, subscriber_number %% 16)
        WHEN 'SUSPENDED' THEN %(now)s - interval '5 hours'
        WHEN 'INACTIVE' THEN %(now)s - interval '1 hour' * (1 + number %% 200)
        WHEN 'UNREAD' THEN %(now)s - interval '1 hour' * (1 + number %% 60)
        WHEN 'DOWN' THEN %(now)s - interval '25 minutes'
    END AS since
FROM numbered
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN mode = 'PULL' THEN CASE WHEN subscriber_number %% 30 = 7 THEN 'UNREAD' ELSE 'WELL' END
        WHEN kind = 'QUEUE'
            THEN CASE WHEN event_type_number = 3 AND place < 3 THEN 'DOWN' ELSE 'WELL' END
        WHEN subscriber_number < 16 AND subscriber_number %% 4 <> 3 THEN 'BLOCKED'
        WHEN subscriber_number %% 211 = 4 THEN 'SUSPENDED'
        WHEN number %% 37 = 5 THEN 'INACTIVE'
        WHEN is_retried_apart THEN 'FAILING'
        ELSE 'WELL'
    END AS fate
) AS story;

CREATE UNIQUE INDEX ON many_subscription (event_type_id, place);

CREATE TEMPORARY TABLE many_event_type ON COMMIT DROP AS
SELECT event_type_number AS number, event_type_id, kind, count(*) AS subscriptions
FROM many_subscription
GROUP BY event_type_number, event_type_id, kind;

CREATE UNIQUE INDEX ON many_event_type (number);
ANALYZE many_subscription, many_event_type;

UPDATE subscriptions_subscription SET status = 'INACTIVE', updated_at = many_subscription.since
FROM many_subscription
WHERE many_subscription.id = subscriptions_subscription.id AND many_subscription.fate = 'INACTIVE';
