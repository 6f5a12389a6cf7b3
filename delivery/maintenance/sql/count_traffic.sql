-- Counts the messages accepted and deliveries settled in an interval, adds them to the minutes and
-- to the quarter-hours of subscriptions, and moves the mark: all or nothing. The cost depends on
-- the traffic of the interval: message_by_time, delivery_settled_at, and a look-up of each
-- delivery's last attempt. An EXPIRED delivery was not sent at the expiry: the duration of the last
-- attempt belongs to another time.
WITH settled AS MATERIALIZED (
    SELECT
        delivery.subscription_id, delivery.settled_at,
        delivery.status = 'DELIVERED' AS is_delivered,
        CASE
            WHEN delivery.started_at IS NOT NULL THEN delivery.duration_ms
            WHEN delivery.status <> 'EXPIRED' THEN (
                SELECT duration_ms FROM delivery_loggedattempt
                WHERE delivery_id = delivery.id AND number = delivery.attempts
            )
        END AS duration_ms
    FROM delivery_settled delivery
    WHERE delivery.settled_at >= %(since)s::timestamptz
        AND delivery.settled_at < %(until)s::timestamptz
        AND (delivery.status = 'DELIVERED' OR delivery.status = ANY (%(failures)s::text[]))
), counted AS MATERIALIZED (
    SELECT at, sum(accepted) AS accepted, sum(delivered) AS delivered, sum(failed) AS failed
    FROM (
        SELECT
            date_trunc('minute', published_at) AS at, count(*) AS accepted, 0 AS delivered,
            0 AS failed
        FROM delivery_message
        WHERE published_at >= %(since)s::timestamptz AND published_at < %(until)s::timestamptz
        GROUP BY date_trunc('minute', published_at)
        UNION ALL
        SELECT
            date_trunc('minute', settled_at), 0, count(*) FILTER (WHERE is_delivered),
            count(*) FILTER (WHERE NOT is_delivered)
        FROM settled
        GROUP BY date_trunc('minute', settled_at)
    ) AS either
    GROUP BY at
), minutes AS (
    INSERT INTO delivery_trafficminute AS minute (at, accepted, delivered, failed)
    SELECT at, accepted, delivered, failed FROM counted
    ON CONFLICT (at) DO UPDATE SET
        accepted = minute.accepted + excluded.accepted,
        delivered = minute.delivered + excluded.delivered,
        failed = minute.failed + excluded.failed
), quarters AS (
    INSERT INTO delivery_subscriptiontraffic AS quarter (
        subscription_id, at, step, delivered, failed
    )
    SELECT
        subscription_id, date_bin('15 minutes', settled_at, 'epoch') AS at,
        coalesce(width_bucket(duration_ms::float8, %(bounds)s::float8[]), -1) AS step,
        count(*) FILTER (WHERE is_delivered), count(*) FILTER (WHERE NOT is_delivered)
    FROM settled
    GROUP BY subscription_id, at, step
    ON CONFLICT (subscription_id, at, step) DO UPDATE SET
        delivered = quarter.delivered + excluded.delivered,
        failed = quarter.failed + excluded.failed
)
INSERT INTO delivery_trafficmark AS mark (id, until, accepted, delivered, failed)
SELECT
    1, %(until)s::timestamptz, coalesce(sum(accepted), 0), coalesce(sum(delivered), 0),
    coalesce(sum(failed), 0)
FROM counted
ON CONFLICT (id) DO UPDATE SET
    until = excluded.until,
    accepted = mark.accepted + excluded.accepted,
    delivered = mark.delivered + excluded.delivered,
    failed = mark.failed + excluded.failed
RETURNING until
