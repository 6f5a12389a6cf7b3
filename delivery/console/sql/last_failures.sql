-- The last failures among the newest settled deliveries of a subscription, newest first. Reads at
-- most `searched` entries of delivery_of_subscription, which has the status.
SELECT delivery.id, delivery.status, delivery.reason, delivery.settled_at
FROM (
    SELECT newest.id
    FROM (
        SELECT id, status
        FROM delivery_settled
        WHERE subscription_id = %(subscription)s
        ORDER BY id DESC
        LIMIT %(searched)s
    ) AS newest
    WHERE newest.status IN ('REJECTED', '3xxNOTSUPPORTED', 'FAILED', 'IN_DOUBT', 'EXPIRED')
    ORDER BY newest.id DESC
    LIMIT %(rows)s
) AS failed
JOIN delivery_settled delivery ON delivery.id = failed.id
ORDER BY delivery.id DESC
