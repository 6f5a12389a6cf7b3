-- Settles the PENDING deliveries of QUEUE groups in which one delivery was delivered.
WITH gone AS (
    DELETE FROM delivery_waiting sibling
    USING json_to_recordset(%(rows)s::json) AS delivered (
        message_id bigint, queue_group smallint, delivery_id bigint
    )
    WHERE sibling.id BETWEEN delivered.message_id << 20 AND delivered.message_id << 20 | 1048575
        AND sibling.queue_group = delivered.queue_group
        AND sibling.id <> delivered.delivery_id
        AND sibling.status = 'PENDING'
    RETURNING
        sibling AS waiting, sibling.attempts, sibling.redelivery,
        'delivery ' || delivered.delivery_id || ' of its group was delivered' AS reason
)
INSERT INTO delivery_settled
SELECT settled.*
FROM gone
CROSS JOIN (SELECT delivery_clock() AS now) AS clock
CROSS JOIN LATERAL delivery_settled_as(
    gone.waiting, 'REDUNDANT', gone.attempts, gone.reason, clock.now, gone.redelivery
) AS settled
