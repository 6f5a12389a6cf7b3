-- The state of a suspended lane, and the delivery on top of it.
SELECT lane.state, lane.delivery_id, lane.reason, delivery.status, delivery.subscription_id
FROM delivery_lane lane
LEFT JOIN LATERAL (
    SELECT status, subscription_id FROM delivery_delivery WHERE id = lane.delivery_id LIMIT 1
) AS delivery ON true
WHERE lane.id = %(lane)s
