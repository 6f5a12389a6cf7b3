-- Ends the rate of lanes without a sendable waiting delivery from before their release. Finds the
-- lanes on lane_catching_up, and deliveries on delivery_pending, once per subscription. Leaves a
-- lane whose row somebody else has locked to the next turn: waiting for it, the statement would
-- keep the rows of the other lanes locked, and these could record no run meanwhile.
WITH ended AS MATERIALIZED (
    SELECT lane.id
    FROM delivery_lane lane
    WHERE lane.catch_up_to IS NOT NULL AND NOT EXISTS (
        SELECT
        FROM subscriptions_standing standing
        CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
        CROSS JOIN LATERAL (
            SELECT
            FROM delivery_waiting
            WHERE lane_id = lane.id AND skipped = kind.skipped AND subscription_id = standing.id
                AND status = 'PENDING' AND id <= lane.catch_up_to
            LIMIT 1
        ) AS waiting
        WHERE standing.subscriber_id = lane.subscriber_id AND standing.status = 'ACTIVE'
    )
    FOR NO KEY UPDATE OF lane SKIP LOCKED
)
UPDATE delivery_lane lane
SET catch_up_rate = NULL, catch_up_to = NULL
FROM ended
WHERE lane.id = ended.id
RETURNING lane.id
