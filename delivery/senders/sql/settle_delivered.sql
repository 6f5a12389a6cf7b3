-- Records one success, the most common settlement: like `settle.sql`, with half as much to send and
-- to check.
WITH gone AS (
    DELETE FROM delivery_waiting delivery
    WHERE id = %(delivery_id)s::bigint AND attempts = %(number)s::int - 1
    RETURNING delivery AS waiting, redelivery
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, 'DELIVERED', %(number)s::int, %(reason)s::text, clock.now, gone.redelivery,
        %(started_at)s::timestamptz, %(duration_ms)s::int, %(status_code)s::smallint
    ) AS settled
)
SELECT delivery_amend(
    %(delivery_id)s::bigint, %(number)s::int, 'SUCCESS', %(reason)s::text,
    %(started_at)s::timestamptz, %(duration_ms)s::int, %(status_code)s::smallint, '', ''
)
WHERE NOT EXISTS (SELECT FROM gone)
