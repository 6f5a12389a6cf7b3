-- The deliveries in the callback lane, counted up to a limit: all, and those with earlier failures;
-- the time of the next retry, and of the oldest message. All are of the counted deliveries.
WITH waiting AS MATERIALIZED (
    SELECT delivery.message_id, delivery.next_attempt_at
    FROM delivery_lane lane
    CROSS JOIN LATERAL (
        SELECT message_id, next_attempt_at
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = lane.id
        ORDER BY skipped, subscription_id, id
        LIMIT %(limit)s + 1
    ) AS delivery
    WHERE lane.kind = 'CALLBACK'
)
SELECT
    count(*) AS waiting, count(next_attempt_at) AS failed, min(next_attempt_at) AS next_at,
    (SELECT published_at FROM delivery_message WHERE id = min(waiting.message_id)) AS oldest_at
FROM waiting
