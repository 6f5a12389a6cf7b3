-- Moves failed deliveries to the retry lane, so that their subscriber's own lane flows on.
-- Execute it after `settle.sql`, which has set when they are due. A delivery that a person settled
-- meanwhile stays.
UPDATE delivery_waiting delivery
SET lane_id = retry.id
FROM json_to_recordset(%(rows)s::json) AS moved (delivery_id bigint, number int)
CROSS JOIN (SELECT id FROM delivery_lane WHERE kind = 'RETRY' AND number = 0) AS retry
WHERE delivery.id = moved.delivery_id AND delivery.attempts = moved.number
    AND delivery.status = 'PENDING'
