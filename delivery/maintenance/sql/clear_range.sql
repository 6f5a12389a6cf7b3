-- Removes callbacks, notes of replies and earlier settlements of a range; returns the numbers of
-- messages, deliveries and attempts. Execute it after `lock_range.sql`, when `kept_in_range.sql`
-- found nothing; the partitions are dropped next.
WITH callbacks AS (
    DELETE FROM delivery_callback
    WHERE message_id >= %(first_id)s::bigint AND message_id < %(until_id)s::bigint
), replies AS (
    DELETE FROM delivery_reply
    WHERE delivery_id >= %(first_delivery)s::bigint AND delivery_id < %(until_delivery)s::bigint
), earlier AS (
    DELETE FROM delivery_earliersettlement
    WHERE delivery_id >= %(first_delivery)s::bigint AND delivery_id < %(until_delivery)s::bigint
), deliveries AS (
    SELECT count(*) AS number, count(started_at) AS attempts
    FROM delivery_settled
    WHERE id >= %(first_delivery)s::bigint AND id < %(until_delivery)s::bigint
)
SELECT
    (
        SELECT count(*) FROM delivery_message
        WHERE id >= %(first_id)s::bigint AND id < %(until_id)s::bigint
    ) AS messages,
    deliveries.number AS deliveries,
    deliveries.attempts + (
        SELECT count(*) FROM delivery_loggedattempt
        WHERE delivery_id >= %(first_delivery)s::bigint AND delivery_id < %(until_delivery)s::bigint
    ) AS attempts
FROM deliveries
