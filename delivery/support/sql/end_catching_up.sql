-- Ends the rate of those lanes in which nothing waits any more that was there when they were released and may be sent. Finds
-- them on lane_catching_up, and looks for what waits on delivery_pending, once for each subscription.
UPDATE delivery_lane lane
SET catch_up_rate = NULL, catch_up_to = NULL
WHERE lane.catch_up_to IS NOT NULL AND NOT EXISTS (
    SELECT
    FROM subscriptions_standing standing
    CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
    CROSS JOIN LATERAL (
        SELECT
        FROM delivery_waiting
        WHERE lane_id = lane.id AND skipped = kind.skipped AND subscription_id = standing.id AND status = 'PENDING'
            AND id <= lane.catch_up_to
        LIMIT 1
    ) AS waiting
    WHERE standing.subscriber_id = lane.subscriber_id AND standing.status = 'ACTIVE'
)
RETURNING lane.id
