-- Takes the reply to a delivery, once; returns whether it was taken: not if the message is gone. Of
-- several at a time the first inserts the row. The others wait until this transaction ends: after a
-- commit they take nothing. The endpoints of a QUEUE group have a single reply together. The
-- message is locked against removal, so no row stays without a message.
WITH kept AS MATERIALIZED (
    SELECT id FROM delivery_message WHERE id = %(message)s::bigint FOR KEY SHARE
), taken AS (
    INSERT INTO delivery_reply (delivery_id, message_id, queue_group, digest)
    SELECT %(delivery)s::bigint, id, %(queue_group)s::smallint, %(digest)s::bytea
    FROM kept
    ON CONFLICT DO NOTHING
    RETURNING delivery_id
)
SELECT EXISTS (SELECT FROM taken) AS is_taken
