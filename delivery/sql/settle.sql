-- Records attempts and what became of their deliveries; returns the deliveries whose attempt was new.
-- The guard is the number of attempts: committing the same group twice changes nothing. A delivery that a
-- person settled meanwhile keeps that status, and has the attempt in its history all the same.
WITH verdicts AS (
    SELECT *
    FROM unnest(
        %(delivery)s::bigint[], %(number)s::int[], %(status)s::text[], %(skipped)s::bool[], %(reason)s::text[],
        %(outcome)s::text[], %(status_code)s::smallint[], %(error)s::text[], %(excerpt)s::bytea[],
        %(started_at)s::timestamptz[], %(duration_ms)s::int[]
    ) AS verdict (
        delivery_id, number, status, skipped, reason, outcome, status_code, error, excerpt, started_at, duration_ms
    )
), changed AS (
    UPDATE delivery_delivery delivery
    SET attempts = verdict.number,
        reason = verdict.reason,
        redelivery = CASE WHEN verdict.outcome = 'LOST' THEN 'in-doubt' ELSE delivery.redelivery END,
        status = CASE WHEN delivery.status = 'PENDING' THEN verdict.status ELSE delivery.status END,
        skipped = delivery.status = 'PENDING' AND verdict.status = 'PENDING' AND verdict.skipped,
        settled_at = CASE
            WHEN delivery.status <> 'PENDING' THEN delivery.settled_at
            WHEN verdict.status <> 'PENDING' THEN clock_timestamp()
        END
    FROM verdicts verdict
    WHERE delivery.id = verdict.delivery_id AND delivery.attempts = verdict.number - 1
    RETURNING delivery.id
), doubts AS (
    INSERT INTO delivery_journalentry (kind, text, actor, delivery_id)
    SELECT 'IN_DOUBT', 'In doubt: a sender died and may have sent it.', '', changed.id
    FROM changed
    JOIN verdicts ON verdicts.delivery_id = changed.id
    WHERE verdicts.outcome = 'LOST'
)
INSERT INTO delivery_attempt (
    delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
)
SELECT delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
FROM verdicts
JOIN changed ON changed.id = verdicts.delivery_id
RETURNING delivery_id
