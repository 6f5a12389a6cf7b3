-- Takes the oldest failures that are still to be told, those that are due or those of some deliveries, and returns what is told of each.
-- They are gone with the transaction that tells them, and come back with one that does not commit. Who
-- takes one that another has just taken waits, and does not get it; all take them in one order.
-- Looks into all partitions: see `delivery.database`.
WITH taken AS (
    DELETE FROM delivery_failurenotice
    -- An array, which is made once: what is IN a query that locks may be looked for again for each row, beyond the limit.
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM delivery_failurenotice
        WHERE CASE
            WHEN %(delivery)s::bigint[] IS NULL THEN due_at <= statement_timestamp()
            ELSE delivery_id = ANY (%(delivery)s::bigint[])
        END
        ORDER BY id
        LIMIT %(limit)s
        FOR UPDATE
    ))
    RETURNING id, delivery_id, number
)
SELECT
    delivery.id AS delivery, delivery.message_id, event_type.name AS event, subscriber.name AS subscriber,
    subscription.name AS subscription, delivery.status, delivery.attempts, attempt.number,
    attempt.started_at, attempt.duration_ms, attempt.outcome, attempt.status_code, attempt.error
FROM taken
JOIN delivery_delivery delivery ON delivery.id = taken.delivery_id
JOIN delivery_message message ON message.id = delivery.message_id
JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
-- An attempt that failed is logged.
LEFT JOIN delivery_loggedattempt attempt
    ON attempt.delivery_id = taken.delivery_id AND attempt.number = taken.number
ORDER BY taken.id
