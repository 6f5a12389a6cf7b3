-- Stores notices of failures about to be settled, for `Inturn.Delivery.Failed`.
-- Execute it before `settle.sql`, with the same guard. A failed `Inturn.Delivery.Failed` message
-- creates no notice of its own. Deliveries whose attempts are used up are written to the journal.
WITH failed AS (
    SELECT delivery.id, failed.number, failed.status, failed.reason
    FROM json_to_recordset(%(rows)s::json) AS failed (
        delivery_id bigint, number int, status text, reason text
    )
    JOIN delivery_waiting delivery
        ON delivery.id = failed.delivery_id AND delivery.attempts = failed.number - 1
        AND delivery.status = 'PENDING'
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT failed.id, failed.number
    FROM failed
    JOIN delivery_waiting delivery ON delivery.id = failed.id
    JOIN delivery_message message ON message.id = delivery.message_id
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE event_type.name <> 'Inturn.Delivery.Failed'
    ON CONFLICT DO NOTHING
)
INSERT INTO delivery_journalentry (kind, text, actor, delivery_id)
SELECT 'FAILED', 'Given up after ' || number || ' attempts: ' || reason, '', id
FROM failed
WHERE status = 'FAILED'
