-- Settles open deliveries as CANCELLED, or as DUPLICATE, and returns which were open. A client
-- loses a delivery fetched from a mailbox: the fetch becomes an unacknowledged attempt, and a later
-- receipt of it finds no lease. Locked in the order of ids, as in every statement with several
-- locks.
WITH open AS MATERIALIZED (
    SELECT id
    FROM delivery_waiting
    WHERE id = ANY (%(delivery)s::bigint[])
    ORDER BY id
    FOR UPDATE
), gone AS (
    DELETE FROM delivery_waiting delivery
    WHERE delivery.id = ANY (ARRAY(SELECT id FROM open))
    RETURNING
        delivery AS waiting, delivery.*,
        CASE
            WHEN delivery.status = 'IN_FLIGHT' THEN delivery.receive_count
            ELSE delivery.attempts
        END AS tried
), attempts AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, error, excerpt
    )
    SELECT
        id, tried, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, 'UNACKNOWLEDGED',
        %(reason)s::text, ''
    FROM gone
    WHERE status = 'IN_FLIGHT'
    ON CONFLICT DO NOTHING
)
INSERT INTO delivery_settled
SELECT settled.*
FROM gone
CROSS JOIN (SELECT delivery_clock() AS now) AS clock
CROSS JOIN LATERAL delivery_settled_as(
    gone.waiting, %(status)s::text, gone.tried, %(reason)s::text, clock.now, gone.redelivery
) AS settled
RETURNING id
