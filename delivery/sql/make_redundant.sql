-- Settles what is PENDING of QUEUE groups one delivery of which was delivered. Leans on the index of message_id.
UPDATE delivery_delivery sibling
SET status = 'REDUNDANT',
    settled_at = (SELECT delivery_clock()),
    skipped = false,
    next_attempt_at = NULL,
    reason = 'delivery ' || delivered.delivery_id || ' of its group was delivered'
FROM json_to_recordset(%(rows)s::json) AS delivered (message_id bigint, queue_group smallint, delivery_id bigint)
WHERE sibling.message_id = delivered.message_id
    AND sibling.queue_group = delivered.queue_group
    AND sibling.id <> delivered.delivery_id
    AND sibling.status = 'PENDING'
