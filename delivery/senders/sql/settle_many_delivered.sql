-- Records plain successes, without an error and an excerpt, as most settlements are: like
-- `settle.sql`, with half as much to send and to check.
WITH verdict AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS verdict (
        delivery_id bigint, number int, reason text, status_code smallint, started_at timestamptz,
        duration_ms int
    )
), gone AS (
    DELETE FROM delivery_waiting delivery
    USING verdict
    WHERE delivery.id = ANY (ARRAY(SELECT delivery_id FROM verdict))
        AND delivery.id = verdict.delivery_id
        AND delivery.attempts = verdict.number - 1
    RETURNING delivery AS waiting, verdict.*, delivery.redelivery AS marked
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, 'DELIVERED', gone.number, gone.reason, clock.now, gone.marked,
        gone.started_at, gone.duration_ms, gone.status_code
    ) AS settled
)
SELECT delivery_amend(
    delivery_id, number, 'SUCCESS', reason, started_at, duration_ms, status_code, '', ''
)
FROM verdict
WHERE delivery_id NOT IN (SELECT delivery_id FROM gone)
