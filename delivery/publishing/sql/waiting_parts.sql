-- Locks the waiting parts of these joins, the oldest first. Parts cancelled or sent by a person,
-- and expired parts, are no parts any more.
SELECT known.key, delivery.id, delivery.message_id, delivery.subscription_id
FROM delivery_joinkey known
JOIN delivery_waiting delivery ON delivery.id = ANY (known.parts)
    -- The same once more, so the planner needs no join to find them.
    AND delivery.id = ANY (ARRAY(
        SELECT unnest(parts) FROM delivery_joinkey WHERE key = ANY (%(key)s::bytea[])
    ))
WHERE known.key = ANY (%(key)s::bytea[]) AND delivery.status = 'PENDING'
    AND delivery.lane_id IS NULL
    AND {is_fresh(delivery)}
ORDER BY delivery.id
FOR UPDATE OF delivery
