-- Selects the attempts to archive which are not in the rows of the statement `archive_deliveries`:
-- of deliveries settled in an interval, in a range of their ids. Each settlement has the attempts
-- since the previous one, by their numbers: clocks may go back. A settlement that a later attempt
-- amended was archived only if an export saw it, as the chunk's snapshot shows. A settlement after
-- the chunk was certainly seen, even if the database was restored meanwhile and counts its
-- transactions from the start.
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
    SELECT
        id AS delivery_id, settled_at, settled_before, attempts, true AS stands, message_id,
        subscription_id, started_at, duration_ms, status_code
    FROM delivery_settled
    WHERE settled_at >= %(since)s AND settled_at < %(until)s AND id >= %(first)s AND id < %(last)s
        AND (
            started_at IS NULL OR attempts > 1 OR EXISTS (
                SELECT FROM delivery_earliersettlement WHERE delivery_id = delivery_settled.id
            )
        )
    UNION ALL
    SELECT
        delivery_id, settled_at, settled_before, attempts, false, message_id, subscription_id,
        NULL, NULL, NULL
    FROM delivery_earliersettlement
    WHERE settled_at >= %(since)s AND settled_at < %(until)s AND delivery_id >= %(first)s
        AND delivery_id < %(last)s AND NOT is_amended
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
), attempts AS (
    -- A success in the row of a delivery with earlier settlements: it may be archived with an
    -- outcome.
    SELECT
        delivery_id, settled_at, settled_before, stands, message_id, subscription_id,
        attempts AS settled_attempts, attempts AS number, started_at, duration_ms,
        'SUCCESS'::varchar(16) AS outcome, status_code, ''::text AS error, ''::bytea AS excerpt
    FROM settled
    WHERE started_at IS NOT NULL AND EXISTS (
        SELECT FROM delivery_earliersettlement WHERE delivery_id = settled.delivery_id
    )
    UNION ALL
    -- The others are looked up singly, whatever the planner expects: a join would read the attempts
    -- of all older deliveries, too. A success in the row of a delivery belongs to the settlement
    -- that stands.
    SELECT
        settled.delivery_id, settled.settled_at, settled.settled_before, settled.stands,
        settled.message_id, settled.subscription_id, settled.attempts, attempt.*
    FROM settled
    CROSS JOIN LATERAL (
        SELECT number, started_at, duration_ms, outcome, status_code, error, excerpt
        FROM delivery_loggedattempt
        WHERE delivery_id = settled.delivery_id
            AND (settled.started_at IS NULL OR number <> settled.attempts)
        OFFSET 0
    ) AS attempt
    WHERE settled.started_at IS NULL OR settled.attempts > 1
)
SELECT
    attempts.delivery_id, attempts.number, attempts.settled_at, attempts.message_id,
    attempts.subscription_id, attempts.started_at, attempts.duration_ms, attempts.outcome,
    attempts.status_code::int AS status_code, attempts.error, attempts.excerpt
FROM attempts
LEFT JOIN archived
    ON archived.delivery_id = attempts.delivery_id AND archived.settled_at = attempts.settled_at
    -- Two settlements may have the same time, while the clock is behind the archive (see
    -- `delivery_clock`).
    AND archived.settled_before = attempts.settled_before
WHERE attempts.number > coalesce(archived.attempts, 0)
    AND (attempts.stands OR attempts.number <= attempts.settled_attempts)
