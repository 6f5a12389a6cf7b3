-- The names and endpoints of subscriptions as of their newest hour; some may be deleted since. A
-- probe of history_hour_of for each.
SELECT newest.subscription_id, newest.subscription, newest.subscriber, newest.endpoint
FROM unnest(%(ids)s::bigint[]) AS concerned_ids (id)
CROSS JOIN LATERAL (
    SELECT subscription_id, subscription, subscriber, endpoint
    FROM delivery_historyhour
    WHERE subscription_id = concerned_ids.id
    ORDER BY hour DESC
    LIMIT 1
) AS newest
