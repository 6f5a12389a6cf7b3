-- Returns the earliest time at which a message of a range may be removed by the days of retention,
-- or null: the deliveries, all settled, are then older than the days of their statuses; a message
-- without deliveries is older than the message's own days. `days` has an entry for each status not
-- kept for ever. Each row of the range is read once, by a hash join.
SELECT min(message.ripe_at)
FROM (
    SELECT
        CASE
            WHEN count(delivery.id) = 0
                THEN message.published_at + %(unmatched_days)s::int * interval '24 hours'
            -- Null, if any of them is open or kept for ever.
            WHEN bool_and(delivery.ripe_at IS NOT NULL) THEN max(delivery.ripe_at)
        END AS ripe_at
    FROM delivery_message message
    LEFT JOIN (
        SELECT
            id, message_id,
            settled_at + (%(days)s::jsonb ->> status)::int * interval '24 hours' AS ripe_at
        FROM delivery_delivery
        WHERE id >= %(first_delivery)s::bigint AND id < %(until_delivery)s::bigint
    ) AS delivery ON delivery.message_id = message.id
    WHERE message.id >= %(first_id)s::bigint AND message.id < %(until_id)s::bigint
    GROUP BY message.id, message.published_at
) AS message
