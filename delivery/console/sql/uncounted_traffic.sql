-- Messages accepted and deliveries delivered and failed in an interval that the chores have not
-- counted yet, each up to a limit, by message_by_time and delivery_settled_at.
WITH settled AS (
    SELECT status
    FROM delivery_settled
    WHERE settled_at >= %(since)s AND settled_at < %(until)s
    ORDER BY settled_at DESC
    LIMIT %(limit)s + 1
)
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM delivery_message
            WHERE published_at >= %(since)s AND published_at < %(until)s
            ORDER BY published_at DESC
            LIMIT %(limit)s + 1
        ) AS accepted
    ) AS accepted,
    (SELECT count(*) FROM settled) AS settled,
    (SELECT count(*) FROM settled WHERE status = 'DELIVERED') AS delivered,
    (SELECT count(*) FROM settled WHERE status = ANY (%(failures)s::text[])) AS failed
