-- Moves failed deliveries to the retry lane, so that their subscriber's own lane flows on.
-- Execute it after `settle.sql`, which has set when they are due. A delivery that a person settled
-- meanwhile stays.
WITH moved AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(rows)s::json) AS moved (delivery_id bigint, number int)
)
UPDATE delivery_waiting delivery
SET lane_id = (SELECT id FROM delivery_lane WHERE kind = 'RETRY' AND number = 0)
WHERE delivery.id = ANY (ARRAY(SELECT delivery_id FROM moved)) AND delivery.status = 'PENDING'
    -- IS TRUE keeps it from being a join.
    AND ((delivery.id, delivery.attempts) IN (SELECT delivery_id, number FROM moved)) IS TRUE
