-- Adds new failures to the incidents of their subscription and cause, and makes missing incidents.
-- The pending failures are deleted by the counting transaction: each failure counts once. A
-- delivery failing again by the same cause, after a resubmission, is in the incident already. If
-- the rule is off, the pending failures are deleted only.
WITH taken AS (
    DELETE FROM delivery_failuresign
    WHERE id = ANY (ARRAY(SELECT id FROM delivery_failuresign ORDER BY id LIMIT %(limit)s))
    RETURNING delivery_id, subscription_id, cause, at
), grouped AS (
    SELECT
        'FAILURES ' || subscription_id || ' ' || cause AS key, subscription_id, cause,
        min(at) AS first_at, max(at) AS last_at, max(delivery_id) AS delivery_id
    FROM taken
    WHERE EXISTS (SELECT FROM delivery_incidentrule WHERE kind = 'FAILURES' AND is_on)
    GROUP BY subscription_id, cause
), incident AS (
    INSERT INTO delivery_incident AS known (
        key, kind, subscription_id, cause, delivery_id, first_at, absent_since
    )
    SELECT key, 'FAILURES', subscription_id, cause, delivery_id, first_at, last_at
    FROM grouped
    ORDER BY key
    ON CONFLICT (key) WHERE state <> 'CLOSED' DO UPDATE
    SET absent_since = greatest(known.absent_since, excluded.absent_since),
        delivery_id = excluded.delivery_id
    RETURNING id, key
), added AS (
    INSERT INTO delivery_incidentdelivery (incident_id, delivery_id)
    SELECT DISTINCT incident.id, taken.delivery_id
    FROM taken
    JOIN incident
        ON incident.key = 'FAILURES ' || taken.subscription_id || ' ' || taken.cause
    ON CONFLICT DO NOTHING
    RETURNING incident_id
)
SELECT
    (SELECT count(*) FROM taken) AS taken,
    ARRAY(SELECT incident_id FROM added) AS incidents
