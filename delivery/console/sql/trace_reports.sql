-- The messages about failures of deliveries, of the event type `Inturn.Delivery.Failed`: those
-- published within a minute after the settlement, of the first few hundred.
SELECT failed.id AS delivery_id, report.id AS message_id, report.published_at
FROM unnest(%(deliveries)s::bigint[], %(settled)s::timestamptz[]) AS failed (id, settled_at)
CROSS JOIN LATERAL (
    SELECT id, published_at, body
    FROM delivery_message
    WHERE event_type_id = %(event_type)s
        AND published_at >= failed.settled_at
        AND published_at < failed.settled_at + interval '1 minute'
    ORDER BY published_at
    LIMIT 300
) AS report
WHERE position(convert_to('"delivery":' || failed.id || ',', 'UTF8') IN report.body) > 0
