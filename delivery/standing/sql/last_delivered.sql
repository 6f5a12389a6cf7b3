-- When the newest DELIVERED of these subscriptions was delivered. Reads at most `searched` entries
-- of delivery_of_subscription for each, which has the status.
SELECT max(delivery.settled_at) AS at
FROM unnest(%(subscriptions)s::bigint[]) AS wanted (id)
CROSS JOIN LATERAL (
    SELECT newest.id
    FROM (
        SELECT id, status
        FROM delivery_settled
        WHERE subscription_id BETWEEN wanted.id AND wanted.id
        ORDER BY subscription_id DESC, id DESC
        LIMIT %(searched)s
    ) AS newest
    WHERE newest.status = 'DELIVERED'
    ORDER BY newest.id DESC
    LIMIT 1
) AS delivered
CROSS JOIN LATERAL (
    SELECT settled_at FROM delivery_settled WHERE id = delivered.id LIMIT 1
) AS delivery
