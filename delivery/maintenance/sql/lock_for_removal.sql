-- Locks messages, those to be removed with them, and their deliveries; skips rows locked by others.
-- Edited copies are removed with their message, and answers to callbacks with the message of the
-- callback: nothing may refer to a removed message. From now on nobody changes these rows, nor adds
-- references to them. Returns the ids of the locked rows.
-- Without partition pruning: see `delivery.database`.
WITH RECURSIVE family AS (
    SELECT unnest(%(ripe)s::bigint[]) AS id
    UNION
    SELECT other.id
    FROM family
    CROSS JOIN LATERAL (
        SELECT id FROM delivery_message WHERE edited_from_id = family.id
        UNION ALL
        SELECT answer_id
        FROM delivery_callback
        WHERE message_id = family.id AND answer_id IS NOT NULL
    ) AS other
), messages AS MATERIALIZED (
    SELECT id
    FROM delivery_message
    WHERE id = ANY (ARRAY(SELECT id FROM family))
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), deliveries AS MATERIALIZED (
    SELECT delivery.id
    FROM (SELECT id FROM messages ORDER BY id) AS owner
    CROSS JOIN LATERAL (
        SELECT id
        FROM delivery_delivery
        WHERE id BETWEEN owner.id << 20 AND owner.id << 20 | 1048575
        ORDER BY id
        FOR UPDATE SKIP LOCKED
    ) AS delivery
)
SELECT ARRAY(SELECT id FROM messages) AS messages, ARRAY(SELECT id FROM deliveries) AS deliveries
