-- The history's counts in an interval: once by hour (subscription_id is null), once by subscription
-- (hour is null). A single scan: over all hours by history_hour_read, which contains all columns
-- read here; over a subscription's by history_hour_of.
SELECT
    hour, subscription_id, subscriber,
    -- Sums of bigint are numeric, which takes twice as long; a float is exact up to these numbers.
    sum(delivered::float8)::bigint AS delivered,
    sum((rejected + unsupported + failed + expired)::float8)::bigint AS failed,
    sum(attempts::float8)::bigint AS attempts,
    sum(retried::float8)::bigint AS retried,
    sum(bytes::float8)::bigint AS bytes,
    sum(blocked_seconds) AS blocked_seconds,
    max(latency_p50) AS latency_p50, max(latency_p95) AS latency_p95,
    max(latency_p99) AS latency_p99, max(response_p50) AS response_p50,
    max(response_p95) AS response_p95, max(response_p99) AS response_p99
FROM delivery_historyhour
WHERE hour >= %(since)s AND hour < %(until)s
    AND (%(subscriptions)s::bigint[] IS NULL OR subscription_id = ANY (%(subscriptions)s::bigint[]))
    AND (%(subscriber)s = '' OR subscriber = %(subscriber)s)
    AND (%(event_type)s = '' OR event_type = %(event_type)s)
GROUP BY GROUPING SETS ((hour), (subscriber, subscription_id))
