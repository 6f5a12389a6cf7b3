-- Locks these deliveries, and all others of their QUEUE groups, in the order of their ids. A sender
-- about to settle a delivery of a group then waits, and a decision about the group stays true until
-- the transaction ends.
-- Without partition pruning: see `delivery.database`.
SELECT delivery.id
FROM delivery_delivery delivery
WHERE delivery.id IN (
    SELECT unnest(%(delivery)s::bigint[])
    UNION
    SELECT sibling.id
    FROM delivery_delivery chosen
    JOIN delivery_delivery sibling
        ON sibling.id BETWEEN chosen.message_id << 20 AND chosen.message_id << 20 | 1048575
        AND sibling.queue_group = chosen.queue_group
    WHERE chosen.id = ANY (%(delivery)s::bigint[])
)
ORDER BY delivery.id
FOR UPDATE OF delivery
