-- Counts the open deliveries of the subscriptions of each thing, held deliveries included, up to a
-- limit: in the subscriber's lane and the shared lanes on delivery_pending, in the mailbox on
-- delivery_in_mailbox, delivery_delayed and delivery_leased. The ORDER BY of these indexes keeps
-- the planner, whatever the statistics say, from an index over all deliveries ever made.
WITH part AS MATERIALIZED (
    SELECT thing, subscription_id
    FROM unnest(%(things)s::integer[], %(subscriptions)s::bigint[]) AS part (thing, subscription_id)
), shared AS MATERIALIZED (
    SELECT id FROM delivery_lane WHERE kind <> 'TOPIC'
)
SELECT
    counted.thing,
    (
        SELECT count(*) FROM (
            SELECT
            FROM part
            CROSS JOIN LATERAL (
                SELECT
                FROM (
                    SELECT id FROM shared
                    UNION ALL
                    SELECT lane.id
                    FROM subscriptions_subscription subscription
                    JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
                    WHERE subscription.id = part.subscription_id
                ) AS lane
                CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
                CROSS JOIN LATERAL (
                    SELECT FROM delivery_waiting
                    WHERE lane_id BETWEEN lane.id AND lane.id AND skipped = kind.skipped
                        AND subscription_id = part.subscription_id AND status = 'PENDING'
                    ORDER BY lane_id, skipped, subscription_id, id LIMIT %(limit)s + 1
                ) AS in_lane
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN part.subscription_id AND part.subscription_id
                        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                    ORDER BY subscription_id, id LIMIT %(limit)s + 1
                )
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN part.subscription_id AND part.subscription_id
                        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
                    ORDER BY subscription_id, next_attempt_at LIMIT %(limit)s + 1
                )
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN part.subscription_id AND part.subscription_id
                        AND status = 'IN_FLIGHT'
                    ORDER BY subscription_id, lease_expires_at, id LIMIT %(limit)s + 1
                )
                LIMIT %(limit)s + 1
            ) AS opened
            WHERE part.thing = counted.thing
            LIMIT %(limit)s + 1
        ) AS found
    ) AS waiting
FROM (SELECT DISTINCT thing FROM part) AS counted
