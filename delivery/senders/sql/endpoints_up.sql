-- Deletes rows of endpoints that are no longer DOWN, if the lane wrote them: the row of the
-- subscription or, without a subscription, all but the row of the delivery that stops the lane.
DELETE FROM delivery_endpointhealth health
USING json_to_recordset(%(rows)s::json) AS up (
    lane_id bigint, subscription_id bigint, delivery_id bigint
)
WHERE health.lane_id = up.lane_id AND CASE
    WHEN up.subscription_id IS NULL
        THEN health.subscription_id IS DISTINCT FROM delivery_subscription_of(up.delivery_id)
    ELSE health.subscription_id = up.subscription_id
END
