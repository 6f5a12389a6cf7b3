-- Writes the journal for attempts whose sender died; execute it before `settle.sql`, with the same
-- guard.
INSERT INTO delivery_journalentry (kind, text, actor, delivery_id)
SELECT 'IN_DOUBT', 'In doubt: a sender died and may have sent it.', '', delivery.id
FROM json_to_recordset(%(rows)s::json) AS lost (delivery_id bigint, number int)
CROSS JOIN LATERAL (
    SELECT id, attempts FROM delivery_delivery WHERE id = lost.delivery_id LIMIT 1
) AS delivery
WHERE delivery.attempts = lost.number - 1
