-- The settled deliveries since a moment of each of these subscriptions, or of all subscriptions of
-- each of these subscribers: by step of time, and by duration of the last attempt (the rows without
-- a time). Reads each subscription's rows by primary key: at most 96 quarters of an hour.
SELECT
    owned.owner_id, date_bin(%(step)s::interval, traffic.at, %(since)s) AS at, traffic.step,
    sum(traffic.delivered)::int AS delivered, sum(traffic.failed)::int AS failed
FROM (
    SELECT id, id AS owner_id
    FROM subscriptions_subscription
    WHERE id = ANY (%(subscriptions)s::bigint[])
    UNION ALL
    SELECT id, subscriber_id
    FROM subscriptions_subscription
    WHERE subscriber_id = ANY (%(subscribers)s::bigint[])
) AS owned
JOIN delivery_subscriptiontraffic traffic
    ON traffic.subscription_id = owned.id AND traffic.at >= %(since)s
GROUP BY owned.owner_id,
    GROUPING SETS ((date_bin(%(step)s::interval, traffic.at, %(since)s)), (traffic.step))
