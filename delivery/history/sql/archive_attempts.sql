-- Selects the attempts to archive: of deliveries settled in an interval, in a range of their ids.
-- Each settlement has the attempts since the previous one, by their numbers: clocks may go back. A
-- settlement that a later attempt amended was archived only if an export saw it, which its chunk's
-- snapshot shows. One that ended after its chunk was certainly seen, even if the database was
-- restored meanwhile and counts its transactions from the start.
WITH earlier AS MATERIALIZED (
    SELECT earlier.delivery_id, earlier.settled_before, earlier.is_amended, earlier.attempts
    FROM delivery_earliersettlement earlier
    LEFT JOIN LATERAL (
        SELECT until, snapshot, ended_at
        FROM delivery_archivechunk
        WHERE earlier.is_amended AND kind = 'EXPORT' AND state = 'DONE'
            AND since <= earlier.settled_at
        ORDER BY since DESC
        LIMIT 1
    ) AS chunk ON true
    WHERE earlier.delivery_id >= %(first)s AND earlier.delivery_id < %(last)s AND (
        NOT earlier.is_amended
        OR (
            earlier.settled_at < chunk.until AND (
                earlier.ended_at > chunk.ended_at
                OR NOT pg_visible_in_snapshot(earlier.ended_by::xid8, chunk.snapshot::pg_snapshot)
            )
        )
    )
), settled AS (
    SELECT delivery_id, settled_at, settled_before, attempts, stands, message_id, subscription_id
    FROM delivery_settlement
    WHERE settled_at >= %(since)s AND settled_at < %(until)s AND delivery_id >= %(first)s
        AND delivery_id < %(last)s
), archived AS (
    SELECT
        settled.delivery_id, settled.settled_at, settled.settled_before,
        max(earlier.attempts) AS attempts
    FROM earlier
    JOIN settled ON settled.delivery_id = earlier.delivery_id AND (
        settled.settled_before > earlier.settled_before
        OR (settled.settled_before = earlier.settled_before AND earlier.is_amended)
    )
    GROUP BY settled.delivery_id, settled.settled_at, settled.settled_before
)
SELECT
    attempt.delivery_id, attempt.number, settled.settled_at, settled.message_id,
    settled.subscription_id, attempt.started_at, attempt.duration_ms, attempt.outcome,
    attempt.status_code::int AS status_code, attempt.error, attempt.excerpt
FROM settled
JOIN delivery_attempt attempt ON attempt.delivery_id = settled.delivery_id
LEFT JOIN archived
    ON archived.delivery_id = settled.delivery_id AND archived.settled_at = settled.settled_at
    -- Two settlements may have the same time, while the clock is behind the archive (see
    -- `delivery_clock`).
    AND archived.settled_before = settled.settled_before
-- The range once more, because the planner does not derive it.
WHERE attempt.delivery_id >= %(first)s AND attempt.delivery_id < %(last)s
    AND attempt.number > coalesce(archived.attempts, 0)
    AND (settled.stands OR attempt.number <= settled.attempts)
