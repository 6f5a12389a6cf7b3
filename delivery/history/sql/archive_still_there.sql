-- PostgreSQL's deliveries of spans of messages' ids, each from one of `firsts` to the `lasts` at
-- the same place: those of which the archive can have no other settlement and no other attempt.
-- Retention removes a message with everything of the deliveries, and an id is never used again. A
-- settlement amended by a late attempt may be in the archive or not. Leans on the primary key.
SELECT delivery.id
FROM unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS span (first, last)
CROSS JOIN LATERAL (
    SELECT id
    FROM delivery_delivery
    WHERE id >= span.first << 20 AND id < (span.last + 1) << 20
        AND id >= %(first)s::bigint << 20 AND id < (%(last)s::bigint + 1) << 20
    OFFSET 0
) AS delivery
WHERE NOT EXISTS (
    SELECT FROM delivery_earliersettlement WHERE delivery_id = delivery.id AND is_amended
)
