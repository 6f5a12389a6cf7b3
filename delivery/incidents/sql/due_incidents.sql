-- Locks the incidents to be opened, closed or announced again, oldest first. An incident opens when
-- the cause has existed for the rule's time, and FAILURES are as many as the rule's bound. It
-- closes when the cause has been absent for the rule's quiet time; FAILURES, if they are among
-- `ended`. It becomes CRITICAL when it has been open for ten times the rule's time, at least an
-- hour. Other changes are announced if the last announcement was before `announced_before`.
WITH due AS (
    SELECT
        incident.id,
        CASE
            WHEN incident.state = 'WATCHED' THEN 'OPENED'
            WHEN incident.absent_since
                < statement_timestamp() - make_interval(secs => rule.quiet_seconds)
                AND (incident.kind <> 'FAILURES' OR incident.id = ANY (%(ended)s::bigint[]))
                THEN 'CLOSED'
            ELSE 'CHANGED'
        END AS event,
        incident.severity = 'WARNING' AND incident.absent_since IS NULL
        AND incident.opened_at < statement_timestamp()
            - make_interval(secs => greatest(10 * rule.after_seconds, 3600)) AS is_rising,
        CASE incident.state
            WHEN 'WATCHED' THEN incident.first_at
                <= statement_timestamp() - make_interval(secs => rule.after_seconds)
                AND CASE incident.kind WHEN 'FAILURES'
                    THEN incident.count >= coalesce(rule.bound, 1)
                    ELSE incident.absent_since IS NULL END
            ELSE incident.is_changed AND incident.announced_at < %(announced_before)s
        END AS is_due
    FROM delivery_incident incident
    JOIN delivery_incidentrule rule ON rule.kind = incident.kind
    WHERE incident.state IN ('WATCHED', 'OPEN')
)
SELECT due.id, due.event, due.is_rising
FROM due
JOIN delivery_incident incident ON incident.id = due.id
WHERE due.is_due OR due.is_rising OR due.event = 'CLOSED'
ORDER BY due.id
LIMIT %(limit)s
FOR UPDATE OF incident
