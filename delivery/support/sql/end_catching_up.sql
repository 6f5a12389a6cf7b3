-- Ends the rate of lanes without a waiting delivery that existed at their release and may be sent.
-- Finds the lanes on lane_catching_up, and deliveries on delivery_pending, once per subscription.
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
