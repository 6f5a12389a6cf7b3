-- Takes the oldest failure notices, either those due or those of some deliveries, and returns the
-- data to publish for each. The notices are deleted by the publishing transaction, and remain if it
-- does not commit. A transaction waits for a notice just taken by another, and does not get it; all
-- take them in the same order. `is_of_group` is true if the event type reports a group once and
-- this is not the failure to report: a sibling is still open or was delivered, or has a younger
-- notice. Dropping a notice for an open sibling loses nothing: the sibling leaves another. An
-- IN_DOUBT delivery waits for a person, and is always reported.
-- Without partition pruning: see `delivery.database`.
WITH taken AS (
    DELETE FROM delivery_failurenotice
    -- An array, which is evaluated once: in a locking query, the subquery of an IN may be evaluated
    -- again for each row, beyond the limit.
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
    delivery.id AS delivery, delivery.message_id, event_type.name AS event,
    subscriber.name AS subscriber, subscription.name AS subscription,
    subscription.id AS subscription_id, delivery.status,
    delivery.attempts, attempt.number, attempt.started_at, attempt.duration_ms, attempt.outcome,
    attempt.status_code, attempt.error, publisher.name AS publisher,
    publisher.errors_to AS default_errors_to, message.headers ->> 'errorsto' AS errors_to,
    message.edited_from_id, message.destination, message.published_at, delivery.redelivery,
    event_type.errors_when = 'GROUP' AND delivery.queue_group IS NOT NULL
    AND delivery.status <> 'IN_DOUBT' AND EXISTS (
        SELECT
        FROM delivery_delivery sibling
        WHERE sibling.id BETWEEN delivery.message_id << 20 AND delivery.message_id << 20 | 1048575
            AND sibling.queue_group = delivery.queue_group
            AND sibling.id <> delivery.id
            AND (sibling.status IN ('PENDING', 'IN_FLIGHT', 'DELIVERED') OR EXISTS (
                SELECT
                FROM delivery_failurenotice younger
                WHERE younger.delivery_id = sibling.id AND younger.id > taken.id
            ))
    ) AS is_of_group
FROM taken
CROSS JOIN LATERAL (
    SELECT id, message_id, subscription_id, status, attempts, redelivery, queue_group
    FROM delivery_delivery WHERE id = taken.delivery_id LIMIT 1
) AS delivery
CROSS JOIN LATERAL (
    SELECT event_type_id, publisher_id, headers, edited_from_id, destination, published_at
    FROM delivery_message WHERE id = delivery.message_id LIMIT 1
) AS message
JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
LEFT JOIN subscriptions_publisher publisher ON publisher.id = message.publisher_id
-- Failed attempts are logged.
LEFT JOIN LATERAL (
    SELECT number, started_at, duration_ms, outcome, status_code, error
    FROM delivery_loggedattempt
    WHERE delivery_id = taken.delivery_id AND number = taken.number
    LIMIT 1
) AS attempt ON true
ORDER BY taken.id
