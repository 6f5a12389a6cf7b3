-- The stopped lanes, each stopped by the oldest waiting delivery, tried many times.
WITH stopped AS (
    SELECT
        many_subscription.lane_id, min(delivery.id) AS delivery_id,
        min(many_subscription.fate) AS fate, min(many_subscription.since) AS since
    FROM many_subscription
    JOIN delivery_delivery delivery
        ON delivery.subscription_id = many_subscription.id AND delivery.status = 'PENDING'
        AND delivery.lane_id = many_subscription.lane_id
    WHERE many_subscription.fate IN ('BLOCKED', 'SUSPENDED')
    GROUP BY many_subscription.lane_id
), head AS (
    UPDATE delivery_delivery SET attempts = 40, reason = 'unreachable: connection refused'
    FROM stopped
    WHERE delivery_delivery.id = stopped.delivery_id
    RETURNING delivery_delivery.id
), tried AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
    )
    SELECT
        head.id, number, %(now)s - interval '1 minute' * (40 - number), 3, 'UNREACHABLE', NULL,
        'connection refused', ''
    FROM head, generate_series(1, 40) AS number
    ON CONFLICT DO NOTHING
)
UPDATE delivery_lane SET
    state = stopped.fate, since = stopped.since, reason = 'unreachable: connection refused',
    delivery_id = stopped.delivery_id, failures = 40,
    next_try_at = CASE WHEN stopped.fate = 'BLOCKED' THEN %(now)s + interval '40 seconds' END
FROM stopped
WHERE delivery_lane.id = stopped.lane_id
