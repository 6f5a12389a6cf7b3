-- Records which endpoints are DOWN and until when; each row belongs to the lane that wrote it last.
-- A row without a subscription is for the subscription of the delivery that stops its lane. In the
-- order of subscriptions, as in every statement that locks several.
INSERT INTO delivery_endpointhealth AS health (
    subscription_id, lane_id, since, reason, delivery_id, failures, next_try_at
)
SELECT
    subscription.id, down.lane_id, now(), down.reason, down.delivery_id, down.failures,
    now() + make_interval(secs => down.wait_seconds)
FROM json_to_recordset(%(rows)s::json) AS down (
    lane_id bigint, subscription_id bigint, delivery_id bigint, reason text, failures int,
    wait_seconds float8
)
JOIN subscriptions_subscription subscription
    ON subscription.id = coalesce(down.subscription_id, delivery_subscription_of(down.delivery_id))
ORDER BY subscription.id
ON CONFLICT (subscription_id) DO UPDATE
SET lane_id = excluded.lane_id, reason = excluded.reason, delivery_id = excluded.delivery_id,
    failures = excluded.failures, next_try_at = excluded.next_try_at
