-- The state of a suspended lane, and the delivery on top of it.
SELECT lane.state, lane.delivery_id, lane.reason, delivery.status, delivery.subscription_id
FROM delivery_lane lane
LEFT JOIN delivery_delivery delivery ON delivery.id = lane.delivery_id
WHERE lane.id = %(lane)s
