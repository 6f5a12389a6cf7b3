-- The channels for which `claim_alerts` may find something: those of recipients whose oldest unsent
-- alert is due.
SELECT DISTINCT alert.channel
FROM delivery_incidentalert alert
WHERE alert.sent_at IS NULL AND alert.expires_at > %(now)s::timestamptz
    AND alert.next_at <= %(now)s::timestamptz
    AND alert.id IN (
        SELECT min(id)
        FROM delivery_incidentalert
        WHERE sent_at IS NULL AND expires_at > %(now)s::timestamptz
        GROUP BY channel, recipient
    )
ORDER BY alert.channel
