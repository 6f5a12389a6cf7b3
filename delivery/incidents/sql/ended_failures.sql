-- The open incidents of ended failures: quiet for the rule's time, and any of the newest deliveries
-- of the subscription was delivered after the last failure, or none of the incident's deliveries is
-- a failure any more. Reads at most `searched` entries of delivery_of_subscription for each.
SELECT incident.id
FROM delivery_incident incident
JOIN delivery_incidentrule rule ON rule.kind = incident.kind
WHERE incident.state = 'OPEN' AND incident.kind = 'FAILURES'
    AND incident.absent_since
        < statement_timestamp() - make_interval(secs => rule.quiet_seconds)
    AND (
        EXISTS (
            SELECT
            FROM (
                SELECT id, status
                FROM delivery_settled
                WHERE subscription_id = incident.subscription_id
                ORDER BY id DESC
                LIMIT %(searched)s
            ) AS newest
            JOIN delivery_settled delivered
                ON delivered.id = newest.id AND delivered.settled_at > incident.absent_since
            WHERE newest.status = 'DELIVERED'
        )
        OR NOT EXISTS (
            SELECT
            FROM delivery_incidentdelivery failed
            JOIN delivery_settled delivery
                ON delivery.id = failed.delivery_id
                    AND delivery.status IN ('REJECTED', '3xxNOTSUPPORTED', 'FAILED', 'EXPIRED')
            WHERE failed.incident_id = incident.id
        )
    )
