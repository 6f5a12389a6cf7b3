-- Takes the deliveries just stored out of their lanes, because they are parts of a join of ALL and
-- wait for the others. The rows of their keys are locked.
WITH arrived AS (
    SELECT
        delivery.id, wanted.key, subscription.join_name,
        least(
            delivery.expires_at, now() + make_interval(secs => subscription.join_seconds)
        ) AS expires_at
    FROM unnest(%(message)s::bigint[], %(subscription)s::bigint[], %(key)s::bytea[])
        AS wanted (message_id, subscription_id, key)
    JOIN delivery_waiting delivery
        ON delivery.id BETWEEN wanted.message_id << 20 AND wanted.message_id << 20 | 1048575
        AND delivery.subscription_id = wanted.subscription_id
    JOIN subscriptions_subscription subscription ON subscription.id = wanted.subscription_id
), held AS (
    UPDATE delivery_waiting delivery
    SET lane_id = NULL, priority = NULL, expires_at = arrived.expires_at,
        reason = 'waits for the other messages of the join ' || arrived.join_name
    FROM arrived
    WHERE delivery.id = arrived.id
)
UPDATE delivery_joinkey known
SET parts = known.parts || waiting.ids, expires_at = greatest(known.expires_at, waiting.expires_at)
FROM (
    SELECT key, array_agg(id ORDER BY id) AS ids, max(expires_at) AS expires_at
    FROM arrived
    GROUP BY key
) AS waiting
WHERE known.key = waiting.key
