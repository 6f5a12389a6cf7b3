-- Locks these deliveries, and every other of the QUEUE groups that they belong to, in the order of their ids.
-- A sender that is about to settle one of a group waits then, and what is decided about the group is true until the
-- transaction ends. Leans on the index of message_id.
SELECT delivery.id
FROM delivery_delivery delivery
WHERE delivery.id IN (
    SELECT unnest(%(delivery)s::bigint[])
    UNION
    SELECT sibling.id
    FROM delivery_delivery chosen
    JOIN delivery_delivery sibling
        ON sibling.message_id = chosen.message_id AND sibling.queue_group = chosen.queue_group
    WHERE chosen.id = ANY (%(delivery)s::bigint[])
)
ORDER BY delivery.id
FOR NO KEY UPDATE OF delivery
