-- Settles the duplicates among just stored deliveries, by the keys locked by `take_dedup_keys.sql`.
-- It is a separate statement, to see the commits of the transactions for which
-- `take_dedup_keys.sql` waited. The first delivery of a key within the window is new, as is the
-- next after a finally failed delivery or past the window: it holds the key from then on. A
-- delivery after a delivered delivery is a DUPLICATE. A delivery after one not settled, or in
-- doubt, or deleted, is IN_DOUBT. Delivery 0 was delivered by the old broker
-- (`delivery.management.importing`).
-- Without partition pruning: see `delivery.database`.
WITH keyed AS (
    SELECT
        delivery.id, delivery.message_id, delivery.subscription_id, keyed.key,
        known.delivery_id AS first_id,
        CASE WHEN known.delivery_id = 0 THEN 'DELIVERED' ELSE first.status END AS first_status,
        known.seen_at <= now()
            - make_interval(secs => subscription.dedup_window_seconds) AS is_forgotten,
        first_value(delivery.id) OVER (
            PARTITION BY keyed.subscription_id, keyed.key ORDER BY delivery.id
        ) AS leader
    FROM unnest(%(message)s::bigint[], %(subscription)s::bigint[], %(key)s::bytea[])
        AS keyed (message_id, subscription_id, key)
    JOIN delivery_waiting delivery
        ON delivery.id BETWEEN keyed.message_id << 20 AND keyed.message_id << 20 | 1048575
        AND delivery.subscription_id = keyed.subscription_id
    JOIN subscriptions_subscription subscription ON subscription.id = keyed.subscription_id
    CROSS JOIN LATERAL (
        SELECT delivery_id, seen_at
        FROM delivery_dedupkey
        WHERE subscription_id = keyed.subscription_id AND key = keyed.key
        LIMIT 1
    ) AS known
    LEFT JOIN LATERAL (
        SELECT status FROM delivery_delivery WHERE id = known.delivery_id LIMIT 1
    ) AS first ON true
), judged AS (
    SELECT
        keyed.*,
        first_id = leader OR is_forgotten OR coalesce(
            first_status IN ('REJECTED', '3xxNOTSUPPORTED', 'FAILED', 'EXPIRED', 'CANCELLED'), false
        ) AS begins_anew
    FROM keyed
), renewed AS (
    UPDATE delivery_dedupkey known
    SET delivery_id = judged.id, seen_at = now()
    FROM judged
    WHERE judged.begins_anew AND judged.id = judged.leader AND judged.first_id <> judged.leader
        AND known.subscription_id = judged.subscription_id AND known.key = judged.key
), second AS (
    SELECT
        id, CASE WHEN begins_anew THEN leader ELSE first_id END AS first_id,
        CASE WHEN begins_anew THEN 'PENDING' ELSE first_status END AS first_status,
        CASE
            WHEN NOT begins_anew AND first_status IN ('DELIVERED', 'REDUNDANT', 'DUPLICATE')
                THEN 'DUPLICATE'
            ELSE 'IN_DOUBT'
        END AS status
    FROM judged
    WHERE NOT begins_anew OR id <> leader
), gone AS (
    DELETE FROM delivery_waiting delivery
    USING second
    WHERE delivery.id = second.id
    RETURNING
        delivery AS waiting, delivery.redelivery, second.status,
        CASE
            WHEN second.status = 'DUPLICATE' THEN 'duplicate of ' ELSE 'possible duplicate of '
        END || CASE
            WHEN second.first_id = 0 THEN 'a delivery by the old broker'
            ELSE 'delivery ' || second.first_id
        END || CASE
            WHEN second.first_id = 0 THEN ''
            WHEN second.status = 'DUPLICATE' THEN ', which was delivered'
            WHEN second.first_status = 'IN_DOUBT' THEN ', which is IN_DOUBT itself'
            WHEN second.first_status IS NULL THEN ', which has been removed'
            ELSE ', which was not settled yet'
        END AS reason
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, gone.status, 0, gone.reason, clock.now, gone.redelivery
    ) AS settled
    RETURNING id, message_id, subscription_id, status, reason
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT settled.id, 0
    FROM settled
    CROSS JOIN LATERAL (
        SELECT event_type_id FROM delivery_message WHERE id = settled.message_id LIMIT 1
    ) AS message
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE settled.status = 'IN_DOUBT' AND event_type.name <> 'Inturn.Delivery.Failed'
)
INSERT INTO delivery_journalentry (kind, text, actor, message_id, delivery_id, subscription_id)
SELECT
    'DUPLICATE', 'msg_' || message_id || ' is ' || status || ': ' || reason || '.', '', message_id,
    id, subscription_id
FROM settled
