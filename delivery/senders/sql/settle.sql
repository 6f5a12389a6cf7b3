-- Records attempts and their effect on their deliveries.
-- The guard is the number of attempts: committing the same group twice changes nothing. Settling
-- moves a row from `delivery_waiting` to `delivery_settled`; a success is recorded in the row
-- itself, every other attempt is logged. A delivery that a person settled meanwhile is no longer
-- waiting: `delivery_amend` adds the attempt to its history.
-- `delivery.senders.commits.commit_statements` replaces the placeholder of the verdicts by one row
-- of parameters, or by many rows as JSON. `= ANY` finds rows by the index, even with a plan made
-- while the table was nearly empty.
WITH verdict AS MATERIALIZED (
    SELECT
        verdict.*,
        verdict.status = 'DELIVERED' AND verdict.outcome = 'SUCCESS' AND verdict.error = ''
            AND verdict.excerpt = '' AS is_plain
    FROM {verdicts}
), gone AS (
    DELETE FROM delivery_waiting delivery
    USING verdict
    WHERE delivery.id = ANY (ARRAY(SELECT delivery_id FROM verdict WHERE status <> 'PENDING'))
        AND delivery.id = verdict.delivery_id
        AND delivery.attempts = verdict.number - 1
    RETURNING
        delivery AS waiting, verdict.*,
        CASE WHEN verdict.outcome = 'LOST' THEN 'in-doubt' ELSE delivery.redelivery END AS marked
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, gone.status, gone.number, gone.reason, clock.now, gone.marked,
        CASE WHEN gone.is_plain THEN gone.started_at END,
        CASE WHEN gone.is_plain THEN gone.duration_ms END,
        CASE WHEN gone.is_plain THEN gone.status_code END
    ) AS settled
), stays AS (
    UPDATE delivery_waiting delivery
    SET attempts = verdict.number,
        reason = verdict.reason,
        redelivery = CASE
            WHEN verdict.outcome = 'LOST' THEN 'in-doubt'
            ELSE delivery.redelivery
        END,
        next_attempt_at = CASE
            -- A skipped delivery always has it: the reading statements need it.
            WHEN verdict.skipped
                THEN now() + make_interval(secs => coalesce(verdict.wait_seconds, 0))
            ELSE now() + make_interval(secs => verdict.wait_seconds)
        END,
        skipped = verdict.skipped
    FROM verdict
    WHERE delivery.id = ANY (ARRAY(SELECT delivery_id FROM verdict WHERE status = 'PENDING'))
        AND delivery.id = verdict.delivery_id
        AND delivery.attempts = verdict.number - 1
    RETURNING verdict.delivery_id
), logged AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
    )
    SELECT
        delivery_id, number, started_at, duration_ms, outcome, status_code, error,
        decode(excerpt, 'base64')
    FROM verdict
    WHERE NOT is_plain
        AND delivery_id IN (SELECT delivery_id FROM gone UNION ALL SELECT delivery_id FROM stays)
)
SELECT delivery_amend(
    delivery_id, number, outcome, reason, started_at, duration_ms, status_code, error,
    decode(excerpt, 'base64')
)
FROM verdict
WHERE delivery_id NOT IN (SELECT delivery_id FROM gone UNION ALL SELECT delivery_id FROM stays)
