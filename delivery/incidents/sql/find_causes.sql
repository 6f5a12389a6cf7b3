-- The causes found more slowly than stopped lanes: deliveries in doubt, retried or waiting for
-- long, a large backlog, and the history's runs. At most `limit` of a kind. The oldest deliveries
-- are found by jumps on delivery_pending, as in `overview_backlog.sql`: the cost grows with the
-- number of subscriptions with pending deliveries.
WITH RECURSIVE rule AS MATERIALIZED (
    SELECT kind, bound
    FROM delivery_incidentrule
    WHERE is_on AND kind = ANY (%(kinds)s::text[])
), places AS (
    (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND EXISTS (SELECT FROM rule WHERE kind IN ('OLDEST', 'RETRYING'))
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    )
    UNION ALL
    SELECT following.*
    FROM places
    CROSS JOIN LATERAL (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND (lane_id, skipped, subscription_id) > (
                places.lane_id, places.skipped, places.subscription_id
            )
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    ) AS following
), place AS MATERIALIZED (
    SELECT places.*, lane.kind, lane.catch_up_to
    FROM places
    CROSS JOIN LATERAL (
        SELECT state FROM delivery_subscriptionstop
        WHERE subscription_id = places.subscription_id
        LIMIT 1
    ) AS stop
    JOIN delivery_lane lane ON lane.id = places.lane_id
    -- Retried deliveries are a cause of their own, also where a stop is another.
    WHERE stop.state IS NULL
        OR (stop.state IN ('STOPPED', 'DOWN') AND (places.skipped OR lane.kind = 'RETRY'))
)
-- A SYNC delivery is IN_DOUBT until it is answered.
SELECT
    'IN_DOUBT ' || unresolved.subscription_id AS key, 'IN_DOUBT' AS kind,
    min(unresolved.settled_at) AS first_at, NULL::bigint AS lane_id, unresolved.subscription_id,
    max(unresolved.id) AS delivery_id, count(*) AS count
FROM (
    SELECT delivery.id, delivery.subscription_id, delivery.settled_at
    FROM rule
    JOIN delivery_settled delivery ON delivery.status = 'IN_DOUBT'
    WHERE rule.kind = 'IN_DOUBT'
        AND delivery.settled_at < statement_timestamp() - make_interval(secs => rule.bound)
    LIMIT %(limit)s
) AS unresolved
GROUP BY unresolved.subscription_id
UNION ALL
SELECT
    'OLDEST ' || place.lane_id, 'OLDEST', statement_timestamp(), place.lane_id, NULL,
    min(place.id), 0
FROM rule
JOIN place ON place.kind IN ('TOPIC', 'QUEUE') AND place.catch_up_to IS NULL AND NOT place.skipped
WHERE rule.kind = 'OLDEST' AND place.id >> 20 <= (
    SELECT message.id
    FROM delivery_message message
    WHERE message.published_at < statement_timestamp() - make_interval(secs => rule.bound)
    ORDER BY message.published_at DESC
    LIMIT 1
)
GROUP BY place.lane_id
UNION ALL
SELECT
    'RETRYING ' || place.subscription_id, 'RETRYING', statement_timestamp(),
    min(place.lane_id), place.subscription_id, min(place.id), 0
FROM rule
JOIN place ON place.skipped OR place.kind = 'RETRY'
WHERE rule.kind = 'RETRYING' AND EXISTS (
    SELECT
    FROM delivery_waiting waiting
    WHERE waiting.lane_id = place.lane_id AND waiting.skipped = place.skipped
        AND waiting.subscription_id = place.subscription_id AND waiting.status = 'PENDING'
    OFFSET greatest(rule.bound::int - 1, 0)
    LIMIT 1
)
GROUP BY place.subscription_id
UNION ALL
SELECT 'BACKLOG', rule.kind, statement_timestamp(), NULL, NULL, NULL, 0
FROM rule
WHERE rule.kind = 'BACKLOG' AND EXISTS (
    SELECT
    FROM delivery_waiting waiting
    WHERE waiting.status = 'PENDING' AND waiting.lane_id IS NOT NULL
    OFFSET greatest(rule.bound::int - 1, 0)
    LIMIT 1
)
UNION ALL
SELECT 'VERIFY', rule.kind, run.ended_at, NULL, NULL, NULL, 0
FROM rule
CROSS JOIN LATERAL (
    SELECT ended_at, result
    FROM delivery_pipelinerun
    WHERE step = 'VERIFY' AND state = 'DONE'
    ORDER BY id DESC
    LIMIT 1
) AS run
WHERE rule.kind = 'VERIFY' AND run.result ->> 'verdict' = 'broken here'
UNION ALL
SELECT
    'PIPELINE ' || step.name, rule.kind, last.failed_at, NULL, NULL, NULL, last.failures
FROM rule
CROSS JOIN unnest('{EXPORT,ROLLUP,VERIFY}'::text[]) AS step (name)
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE run.state = 'FAILED') AS failures, max(run.ended_at) AS failed_at
    FROM (
        SELECT ended.state, ended.ended_at
        FROM delivery_pipelinerun ended
        WHERE ended.step = step.name AND ended.state IN ('DONE', 'FAILED')
        ORDER BY ended.id DESC
        LIMIT greatest(rule.bound::int, 1)
    ) AS run
) AS last
WHERE rule.kind = 'PIPELINE' AND last.failures >= greatest(rule.bound, 1)
