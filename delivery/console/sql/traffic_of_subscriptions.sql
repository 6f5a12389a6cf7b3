-- What was settled of each of these subscriptions, or of all of each of these subscribers, since a moment: by step of time, and by how
-- long the last attempt took (the rows with no time). Reads the rows of each subscription by their primary key: those of at most 96
-- quarters of an hour.
SELECT
    owned.owner_id, date_bin(%(step)s::interval, traffic.at, %(since)s) AS at, traffic.step,
    sum(traffic.delivered)::int AS delivered, sum(traffic.failed)::int AS failed
FROM (
    SELECT id, id AS owner_id FROM subscriptions_subscription WHERE id = ANY (%(subscriptions)s::bigint[])
    UNION ALL
    SELECT id, subscriber_id FROM subscriptions_subscription WHERE subscriber_id = ANY (%(subscribers)s::bigint[])
) AS owned
JOIN delivery_subscriptiontraffic traffic ON traffic.subscription_id = owned.id AND traffic.at >= %(since)s
GROUP BY owned.owner_id, GROUPING SETS ((date_bin(%(step)s::interval, traffic.at, %(since)s)), (traffic.step))
