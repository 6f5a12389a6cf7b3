-- Stores the answers under keys taken by this transaction.
UPDATE delivery_idempotencykey AS taken
SET message_id = answer.message_id, deliveries = answer.deliveries
FROM unnest(%(key)s::text[], %(message_id)s::bigint[], %(deliveries)s::int[])
    AS answer (key, message_id, deliveries)
WHERE taken.publisher_id = %(publisher)s AND taken.key = answer.key
