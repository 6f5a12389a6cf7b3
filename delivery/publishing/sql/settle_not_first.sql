-- Settles the deliveries just stored which are not the first of their join ONLY ONE, by the keys
-- locked by `take_join_keys.sql`. It is a separate statement, to see the commits of the
-- transactions for which `take_join_keys.sql` waited. A delivery is the first if none was, or if
-- the time of the first is over.
WITH arrived AS (
    SELECT
        delivery.id, wanted.key, known.delivery_id AS first_id, subscription.join_name,
        subscription.join_seconds, known.delivery_id IS NULL OR known.expires_at <= now() AS begins,
        first_value(delivery.id) OVER (PARTITION BY wanted.key ORDER BY delivery.id) AS leader
    FROM unnest(%(message)s::bigint[], %(subscription)s::bigint[], %(key)s::bytea[])
        AS wanted (message_id, subscription_id, key)
    JOIN delivery_waiting delivery
        ON delivery.id BETWEEN wanted.message_id << 20 AND wanted.message_id << 20 | 1048575
        AND delivery.subscription_id = wanted.subscription_id
    JOIN subscriptions_subscription subscription ON subscription.id = wanted.subscription_id
    JOIN delivery_joinkey known ON known.key = wanted.key
), begun AS (
    UPDATE delivery_joinkey known
    SET delivery_id = arrived.id, expires_at = now() + make_interval(secs => arrived.join_seconds)
    FROM arrived
    WHERE arrived.begins AND arrived.id = arrived.leader AND known.key = arrived.key
), gone AS (
    DELETE FROM delivery_waiting delivery
    USING arrived
    WHERE delivery.id = arrived.id AND NOT (arrived.begins AND arrived.id = arrived.leader)
    RETURNING
        delivery AS waiting, delivery.redelivery,
        'delivery ' || CASE WHEN arrived.begins THEN arrived.leader ELSE arrived.first_id END
            || ' was the first of the join ' || arrived.join_name AS reason
)
INSERT INTO delivery_settled
SELECT settled.*
FROM gone
CROSS JOIN (SELECT delivery_clock() AS now) AS clock
CROSS JOIN LATERAL delivery_settled_as(
    gone.waiting, 'REDUNDANT', 0, gone.reason, clock.now, gone.redelivery
) AS settled
