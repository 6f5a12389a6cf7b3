-- The number of messages within the last day for each of these subscriptions, or for all
-- subscriptions of each of these subscribers, and the hours of this day since the subscription was
-- created. Settled deliveries come from the counted quarters of an hour; of the waiting messages
-- the newest are counted, up to a limit for each lane and mailbox. Ids are nearly in the order of
-- publication, so no message is read: the day begins with the id of the first message.
WITH day AS MATERIALIZED (
    SELECT coalesce(min(first.id) << 20, 9223372036854775807) AS first_delivery
    FROM (
        SELECT id
        FROM delivery_message
        WHERE published_at >= now() - interval '1 day'
        ORDER BY published_at
        LIMIT 1
    ) AS first
)
SELECT
    owned.owner_id,
    sum(counted.settled + waits.n)::bigint AS messages,
    greatest(
        least(extract(epoch FROM now() - min(owned.created_at)) / 3600, 24), 1
    )::float8 AS hours
FROM (
    SELECT id, id AS owner_id, subscriber_id, created_at
    FROM subscriptions_subscription
    WHERE id = ANY (%(subscriptions)s::bigint[])
    UNION ALL
    SELECT id, subscriber_id, subscriber_id, created_at
    FROM subscriptions_subscription
    WHERE subscriber_id = ANY (%(subscribers)s::bigint[])
) AS owned
CROSS JOIN LATERAL (
    SELECT coalesce(sum(delivered + failed), 0) AS settled
    FROM delivery_subscriptiontraffic
    WHERE subscription_id = owned.id AND at >= now() - interval '1 day'
) AS counted
CROSS JOIN LATERAL (
    SELECT count(*) AS n
    FROM (
        SELECT waiting.id
        FROM (
            SELECT id FROM delivery_lane WHERE subscriber_id = owned.subscriber_id
            UNION ALL
            SELECT id FROM delivery_lane WHERE kind = 'QUEUE'
        ) AS lane
        CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_waiting
            WHERE lane_id = lane.id AND skipped = kind.skipped AND subscription_id = owned.id
                AND status = 'PENDING' AND id >= (SELECT first_delivery FROM day)
            ORDER BY lane_id DESC, skipped DESC, subscription_id DESC, id DESC
            LIMIT %(limit)s::int
        ) AS waiting
        UNION ALL
        (
            SELECT id
            FROM delivery_waiting
            WHERE subscription_id BETWEEN owned.id AND owned.id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                AND id >= (SELECT first_delivery FROM day)
            ORDER BY subscription_id DESC, id DESC
            LIMIT %(limit)s::int
        )
    ) AS newest
) AS waits
GROUP BY owned.owner_id
