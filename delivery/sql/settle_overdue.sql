-- Settles open deliveries whose time is over, and returns which lanes each of them stopped; to be executed with their rows locked.
-- A fetch that nobody ended becomes an attempt. Each leaves a notice for `Inturn.Delivery.Failed`, but for what
-- tells of a failure itself.
WITH settled AS (
    UPDATE delivery_delivery delivery
    SET status = overdue.status,
        reason = overdue.reason,
        settled_at = (SELECT delivery_clock()),
        skipped = false,
        next_attempt_at = NULL,
        attempts = CASE WHEN before.status = 'IN_FLIGHT' THEN before.receive_count ELSE before.attempts END,
        leased_at = NULL,
        lease_token = NULL,
        lease_expires_at = NULL
    FROM json_to_recordset(%(rows)s::json) AS overdue (id bigint, status text, reason text)
    JOIN delivery_delivery before ON before.id = overdue.id
    WHERE delivery.id = overdue.id AND delivery.status IN ('PENDING', 'IN_FLIGHT')
    RETURNING
        delivery.id, delivery.message_id, delivery.lane_id, delivery.attempts, before.status AS was, before.leased_at
), attempts AS (
    INSERT INTO delivery_attempt (delivery_id, number, started_at, duration_ms, outcome, error, excerpt)
    SELECT
        id, attempts, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, 'UNACKNOWLEDGED',
        'not acknowledged within its visibility', ''
    FROM settled
    WHERE was = 'IN_FLIGHT'
    ON CONFLICT DO NOTHING
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT settled.id, settled.attempts
    FROM settled
    JOIN delivery_message message ON message.id = settled.message_id
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE event_type.name <> 'Inturn.Delivery.Failed'
    ON CONFLICT DO NOTHING
)
SELECT settled.id, lane.id AS stopped_lane
FROM settled
LEFT JOIN delivery_lane lane
    ON lane.id = settled.lane_id AND lane.delivery_id = settled.id AND lane.state IN ('BLOCKED', 'SUSPENDED')
