-- Gives the first deliveries of lanes that resume as many attempts again as their policy allows.
UPDATE delivery_waiting delivery
SET attempts_before = delivery.attempts
FROM json_to_recordset(%(rows)s::json) AS renewed (delivery_id bigint)
WHERE delivery.id = renewed.delivery_id AND delivery.status = 'PENDING'
