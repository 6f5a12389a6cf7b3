-- Settles the parts of a complete join: another message has their contents. Execute it after
-- `waiting_parts.sql`, which locks them.
WITH gone AS (
    DELETE FROM delivery_waiting delivery
    WHERE delivery.id = ANY (%(delivery)s::bigint[])
    RETURNING delivery AS waiting, delivery.redelivery
), known AS (
    UPDATE delivery_joinkey
    SET parts = ARRAY(SELECT unnest(parts) EXCEPT SELECT unnest(%(delivery)s::bigint[]))
    WHERE key = %(key)s::bytea
)
INSERT INTO delivery_settled
SELECT settled.*
FROM gone
CROSS JOIN (SELECT delivery_clock() AS now) AS clock
CROSS JOIN LATERAL delivery_settled_as(
    gone.waiting, 'REDUNDANT', 0, %(reason)s::text, clock.now, gone.redelivery
) AS settled
