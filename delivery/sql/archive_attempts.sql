-- What of the attempts goes into the archive: of deliveries that were settled in a piece of time, of a range of their ids; without
-- those that were archived already, with an earlier settlement that an export saw. Its chunk's snapshot tells whether it
-- did; what was ended after the chunk was seen in any case, also by a database that was restored meanwhile and counts its transactions anew.
WITH archived AS (
    SELECT earlier.delivery_id, max(earlier.attempts) AS attempts
    FROM delivery_earliersettlement earlier
    CROSS JOIN LATERAL (
        SELECT until, snapshot, ended_at
        FROM delivery_archivechunk
        WHERE kind = 'EXPORT' AND state = 'DONE' AND since <= earlier.settled_at
        ORDER BY since DESC
        LIMIT 1
    ) AS chunk
    WHERE earlier.delivery_id >= %(first)s AND earlier.delivery_id < %(last)s AND earlier.settled_at < chunk.until AND (
        earlier.ended_at > chunk.ended_at
        OR NOT pg_visible_in_snapshot(earlier.ended_by::xid8, chunk.snapshot::pg_snapshot)
    )
    GROUP BY earlier.delivery_id
)
SELECT
    attempt.delivery_id, attempt.number, delivery.settled_at, delivery.message_id, delivery.subscription_id,
    attempt.started_at, attempt.duration_ms, attempt.outcome, attempt.status_code::int AS status_code, attempt.error,
    attempt.excerpt
FROM delivery_delivery delivery
JOIN delivery_attempt attempt ON attempt.delivery_id = delivery.id
LEFT JOIN archived ON archived.delivery_id = delivery.id
WHERE delivery.settled_at >= %(since)s AND delivery.settled_at < %(until)s
    AND delivery.id >= %(first)s AND delivery.id < %(last)s
    -- Once more: it does not follow for the planner.
    AND attempt.delivery_id >= %(first)s AND attempt.delivery_id < %(last)s
    AND attempt.number > coalesce(archived.attempts, 0)
