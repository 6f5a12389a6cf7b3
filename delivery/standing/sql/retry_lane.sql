-- The deliveries in the retry lane, the number due now, and the time of the next; and the number of
-- DISABLED and FROZEN URLs. `held` counts those of held subscriptions or whose URL is DISABLED or
-- FROZEN; they are due at the end of it. All are counted up to a limit. Jumps from subscription to
-- subscription on delivery_pending, and probes delivery_due for each.
WITH RECURSIVE places AS (
    {places_of_lanes(SELECT id FROM delivery_lane WHERE kind = 'RETRY')}
), retried AS (
    SELECT DISTINCT places.lane_id, places.subscription_id, sendable.id IS NOT NULL AS is_sendable
    FROM places
    LEFT JOIN delivery_sendable sendable ON sendable.id = places.subscription_id
)
SELECT
    (SELECT count(*) FROM (
        SELECT
        FROM retried
        JOIN delivery_waiting delivery
            ON delivery.lane_id = retried.lane_id AND delivery.skipped = ANY ('{f,t}'::boolean[])
            AND delivery.subscription_id = retried.subscription_id AND delivery.status = 'PENDING'
        LIMIT %(limit)s + 1
    ) AS counted) AS waiting,
    (SELECT count(*) FROM (
        SELECT
        FROM retried
        JOIN delivery_waiting delivery
            ON delivery.lane_id = retried.lane_id AND delivery.skipped = ANY ('{f,t}'::boolean[])
            AND delivery.subscription_id = retried.subscription_id AND delivery.status = 'PENDING'
        WHERE NOT retried.is_sendable
        LIMIT %(limit)s + 1
    ) AS counted) AS held,
    (SELECT count(*) FROM (
        SELECT
        FROM retried
        JOIN delivery_waiting delivery
            ON delivery.lane_id = retried.lane_id
            AND delivery.subscription_id = retried.subscription_id
            AND delivery.status = 'PENDING' AND delivery.next_attempt_at <= now()
        WHERE retried.is_sendable
        LIMIT %(limit)s + 1
    ) AS counted) AS due,
    (
        SELECT min(following.next_attempt_at)
        FROM retried
        CROSS JOIN LATERAL (
            SELECT next_attempt_at
            FROM delivery_waiting delivery
            WHERE delivery.lane_id = retried.lane_id
                AND delivery.subscription_id = retried.subscription_id
                AND delivery.status = 'PENDING' AND delivery.next_attempt_at > now()
            ORDER BY next_attempt_at
            LIMIT 1
        ) AS following
        WHERE retried.is_sendable
    ) AS next_at,
    (SELECT count(DISTINCT subscription_id) FROM retried) AS subscriptions,
    (SELECT count(*) FROM delivery_urlhealth WHERE state = 'DISABLED') AS disabled_urls,
    (SELECT count(*) FROM delivery_urlhealth WHERE state = 'FROZEN') AS frozen_urls
