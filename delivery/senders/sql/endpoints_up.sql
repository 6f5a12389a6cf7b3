-- Forgets endpoints that are DOWN no more, of those that the lane has written: the one of the subscription or, without that,
-- all but the one of the delivery that stops the lane.
DELETE FROM delivery_endpointhealth health
USING json_to_recordset(%(rows)s::json) AS up (lane_id bigint, subscription_id bigint, delivery_id bigint)
WHERE health.lane_id = up.lane_id AND CASE
    WHEN up.subscription_id IS NULL
        THEN health.subscription_id IS DISTINCT FROM delivery_subscription_of(up.delivery_id)
    ELSE health.subscription_id = up.subscription_id
END
