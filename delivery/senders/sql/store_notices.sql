-- Stores notices of failures about to be settled, for `Inturn.Delivery.Failed`.
-- Execute it before `settle.sql`, with the same guard. A failed `Inturn.Delivery.Failed` message
-- creates no notice of its own. Deliveries whose attempts are used up are written to the journal.
WITH failed AS (
    SELECT delivery.id, delivery.message_id, failed.number, failed.status, failed.reason
    FROM json_to_recordset(%(rows)s::json) AS failed (
        delivery_id bigint, number int, status text, reason text
    )
    CROSS JOIN LATERAL (
        SELECT id, message_id, attempts, status
        FROM delivery_waiting WHERE id = failed.delivery_id LIMIT 1
    ) AS delivery
    WHERE delivery.attempts = failed.number - 1 AND delivery.status = 'PENDING'
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT failed.id, failed.number
    FROM failed
    CROSS JOIN LATERAL (
        SELECT event_type_id FROM delivery_message WHERE id = failed.message_id LIMIT 1
    ) AS message
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE event_type.name <> 'Inturn.Delivery.Failed'
    ON CONFLICT DO NOTHING
)
INSERT INTO delivery_journalentry (kind, text, actor, delivery_id)
SELECT 'FAILED', 'FAILED after ' || number || ' attempts: ' || reason, '', id
FROM failed
WHERE status = 'FAILED'
