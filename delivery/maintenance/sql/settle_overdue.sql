-- Settles overdue open deliveries, and returns the lane stopped by each. Execute it with the rows
-- locked. An unfinished fetch becomes an attempt. Each delivery leaves a notice for
-- `Inturn.Delivery.Failed`, except those of `Inturn.Delivery.Failed` messages.
-- Without partition pruning: see `delivery.database`.
WITH gone AS (
    DELETE FROM delivery_waiting delivery
    USING json_to_recordset(%(rows)s::json) AS overdue (id bigint, status text, reason text)
    WHERE delivery.id = overdue.id
    RETURNING
        delivery AS waiting, delivery.*, overdue.status AS becomes, overdue.reason AS why,
        CASE
            WHEN delivery.status = 'IN_FLIGHT' THEN delivery.receive_count
            ELSE delivery.attempts
        END AS tried
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, gone.becomes, gone.tried, gone.why, clock.now, gone.redelivery
    ) AS settled
), attempts AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, error, excerpt
    )
    SELECT
        id, tried, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, 'UNACKNOWLEDGED',
        'not acknowledged within its visibility', ''
    FROM gone
    WHERE status = 'IN_FLIGHT'
    ON CONFLICT DO NOTHING
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT gone.id, gone.tried
    FROM gone
    CROSS JOIN LATERAL (
        SELECT event_type_id FROM delivery_message WHERE id = gone.message_id LIMIT 1
    ) AS message
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE event_type.name <> 'Inturn.Delivery.Failed'
    ON CONFLICT DO NOTHING
)
SELECT gone.id, lane.id AS stopped_lane
FROM gone
LEFT JOIN delivery_lane lane
    ON lane.id = gone.lane_id AND lane.delivery_id = gone.id
    AND lane.state IN ('BLOCKED', 'SUSPENDED')
