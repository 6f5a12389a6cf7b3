-- Searches the next messages for those whose deliveries are all settled long enough; returns them
-- and the new position.
-- `until` has, for each status, the time before which deliveries must be settled; a status without
-- an entry is kept. Messages without deliveries are judged by their publication. Nothing is locked:
-- `remove_messages.sql` checks again. Leans on the primary key.
WITH ripe AS MATERIALIZED (
    SELECT looked.id
    FROM (
        SELECT id, published_at
        FROM delivery_message
        WHERE id > %(position)s AND id <= %(last)s
        ORDER BY id
        LIMIT %(look)s
    ) AS looked
    WHERE coalesce(
        (
            SELECT
                bool_and(coalesce(settled_at < (%(until)s::jsonb ->> status)::timestamptz, false))
            FROM delivery_delivery
            WHERE id BETWEEN looked.id << 20 AND looked.id << 20 | 1048575
        ),
        looked.published_at < %(unmatched_until)s::timestamptz
    )
    ORDER BY looked.id
    LIMIT %(batch)s
)
SELECT
    ARRAY(SELECT id FROM ripe) AS ids,
    CASE
        WHEN (SELECT count(*) FROM ripe) = %(batch)s THEN (SELECT max(id) FROM ripe)
        ELSE coalesce(
            (
                SELECT max(id)
                FROM (
                    SELECT id FROM delivery_message
                    WHERE id > %(position)s AND id <= %(last)s
                    ORDER BY id
                    LIMIT %(look)s
                ) AS looked
            ),
            %(last)s
        )
    END AS position
