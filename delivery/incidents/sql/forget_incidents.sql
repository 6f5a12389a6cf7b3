-- Deletes some incidents closed before a moment, with their deliveries and alerts.
WITH old AS (
    SELECT id
    FROM delivery_incident
    WHERE state = 'CLOSED' AND closed_at < %(before)s
    ORDER BY closed_at
    LIMIT %(limit)s
), deliveries AS (
    DELETE FROM delivery_incidentdelivery WHERE incident_id = ANY (ARRAY(SELECT id FROM old))
), alerts AS (
    DELETE FROM delivery_incidentalert WHERE incident_id = ANY (ARRAY(SELECT id FROM old))
)
DELETE FROM delivery_incident WHERE id = ANY (ARRAY(SELECT id FROM old))
