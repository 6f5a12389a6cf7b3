-- Records attempts and what became of their deliveries.
-- The guard is the number of attempts: committing the same group twice changes nothing. A delivery that a
-- person settled meanwhile keeps that status, and has the attempt in its history all the same: it is settled anew, so that
-- the archive hears of the attempt.
-- Where the verdicts stand, `delivery.senders.writing` puts one row of parameters, or many rows as JSON.
WITH changed AS (
    UPDATE delivery_delivery delivery
    SET attempts = verdict.number,
        reason = verdict.reason,
        redelivery = CASE WHEN verdict.outcome = 'LOST' THEN 'in-doubt' ELSE delivery.redelivery END,
        status = CASE WHEN delivery.status = 'PENDING' THEN verdict.status ELSE delivery.status END,
        next_attempt_at = CASE
            -- A skipped one always has it: it is read by it.
            WHEN verdict.status = 'PENDING' AND verdict.skipped
                THEN now() + make_interval(secs => coalesce(verdict.wait_seconds, 0))
            WHEN verdict.status = 'PENDING' THEN now() + make_interval(secs => verdict.wait_seconds)
        END,
        skipped = delivery.status = 'PENDING' AND verdict.status = 'PENDING' AND verdict.skipped,
        settled_at = CASE
            WHEN delivery.status <> 'PENDING' OR verdict.status <> 'PENDING' THEN (SELECT delivery_clock())
        END
    FROM {verdicts}
    WHERE delivery.id = verdict.delivery_id AND delivery.attempts = verdict.number - 1
    RETURNING verdict.*
)
INSERT INTO delivery_attempt (
    delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
)
SELECT delivery_id, number, started_at, duration_ms, outcome, status_code, error,
    decode(excerpt, 'base64')
FROM changed
