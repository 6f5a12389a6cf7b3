-- Makes the open deliveries of a restored database IN_DOUBT and returns their number; see
-- `config/backup/README.md`. A sender may have sent a delivery of a lane since: an attempt without
-- outcome. A client loses a delivery fetched from a mailbox. VOLATILE deliveries are left to
-- expiry: under another start of the server they are not sent.
WITH gone AS (
    DELETE FROM delivery_waiting delivery
    WHERE server_started_at IS NULL
    RETURNING
        delivery AS waiting, delivery.*,
        CASE
            WHEN delivery.status = 'IN_FLIGHT' THEN delivery.receive_count
            WHEN delivery.lane_id IS NULL THEN delivery.attempts
            ELSE delivery.attempts + 1
        END AS tried
), attempts AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, error, excerpt
    )
    SELECT
        id, tried, coalesce(leased_at, now()), NULL,
        CASE WHEN status = 'IN_FLIGHT' THEN 'UNACKNOWLEDGED' ELSE 'LOST' END, %(reason)s::text, ''
    FROM gone
    WHERE status = 'IN_FLIGHT' OR lane_id IS NOT NULL
    ON CONFLICT DO NOTHING
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, 'IN_DOUBT', gone.tried, %(reason)s::text, clock.now, 'in-doubt'
    ) AS settled
    RETURNING id
)
SELECT count(*) FROM settled
