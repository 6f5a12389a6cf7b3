-- Records the answer to a SYNC call: the delivery's status, the only attempt, and a notice of a
-- failure. The guard is the absence of an attempt: the second time it changes nothing. A delivery
-- decided by a person meanwhile keeps this status and reason, and gets the attempt in the history
-- as well: the settlement time is new, for the archive.
WITH changed AS (
    UPDATE delivery_settled delivery
    SET attempts = 1,
        status = CASE
            WHEN delivery.status = 'IN_DOUBT' THEN %(status)s::text
            ELSE delivery.status
        END,
        reason = CASE
            WHEN delivery.status = 'IN_DOUBT' THEN %(reason)s::text
            ELSE delivery.reason
        END,
        settled_at = (SELECT delivery_clock())
    WHERE delivery.id = %(delivery)s::bigint AND delivery.attempts = 0
    RETURNING delivery.id, delivery.status
), answered AS (
    DELETE FROM delivery_failurenotice WHERE number = 0 AND delivery_id IN (SELECT id FROM changed)
), noticed AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT id, 1 FROM changed WHERE %(is_failure)s::bool AND status = %(status)s::text
    ON CONFLICT DO NOTHING
)
INSERT INTO delivery_loggedattempt (
    delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
)
SELECT
    id, 1, %(started_at)s::timestamptz, %(duration_ms)s::int, %(outcome)s::text,
    %(status_code)s::smallint, %(error)s::text, %(excerpt)s::bytea
FROM changed
RETURNING delivery_id
