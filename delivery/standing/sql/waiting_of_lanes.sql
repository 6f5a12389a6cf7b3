-- The number of waiting deliveries of ACTIVE subscriptions in each of these lanes, whether or not
-- their subscriber is held, counted up to a limit on delivery_pending. Jumps from subscription to
-- subscription there: the cost grows with the number of those with pending deliveries.
WITH RECURSIVE places AS (
    {places_of_lanes(SELECT id FROM unnest(%(ids)s::bigint[]) AS id)}
)
SELECT
    lane.id,
    (
        SELECT count(*) FROM (
            SELECT
            FROM places
            JOIN subscriptions_subscription subscription ON subscription.id = places.subscription_id
            JOIN delivery_waiting delivery
                ON delivery.lane_id = places.lane_id AND delivery.skipped = places.skipped
                AND delivery.subscription_id = places.subscription_id
                AND delivery.status = 'PENDING'
            WHERE places.lane_id = lane.id AND subscription.status = 'ACTIVE'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM unnest(%(ids)s::bigint[]) AS lane (id)
