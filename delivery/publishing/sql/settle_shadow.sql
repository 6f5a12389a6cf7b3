-- Settles the matches of SHADOW subscriptions among just stored deliveries.
WITH gone AS (
    DELETE FROM delivery_waiting delivery
    USING unnest(
        %(message)s::bigint[], %(subscription)s::bigint[]
    ) AS matched (message_id, subscription_id)
    WHERE delivery.id BETWEEN matched.message_id << 20 AND matched.message_id << 20 | 1048575
        AND delivery.subscription_id = matched.subscription_id
    RETURNING delivery AS waiting
)
INSERT INTO delivery_settled
SELECT settled.*
FROM gone
CROSS JOIN (SELECT delivery_clock() AS now) AS clock
CROSS JOIN LATERAL delivery_settled_as(
    gone.waiting, 'SHADOW', 0, 'its subscription was SHADOW: matched, and not sent', clock.now, ''
) AS settled
