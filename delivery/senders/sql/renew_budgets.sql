-- Gives the first deliveries of lanes that resume as many attempts again as their policy allows.
UPDATE delivery_waiting delivery
SET attempts_before = delivery.attempts
WHERE delivery.status = 'PENDING' AND delivery.id = ANY (ARRAY(
    SELECT delivery_id FROM json_to_recordset(%(rows)s::json) AS renewed (delivery_id bigint)
))
