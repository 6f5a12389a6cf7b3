-- What is in a subscriber's mailbox (or of one subscription in it), counted up to a limit, and how fast it is worked off.
-- Available and waited for is what ACTIVE subscriptions have; out is what anybody holds. Two ranges of indexes a subscription, each
-- read no further than the limit, whose first rows are also the oldest; of the rates, the last six whole buckets of ten seconds.
WITH mailbox AS MATERIALIZED (
    SELECT id, status = 'ACTIVE' AS is_active
    FROM subscriptions_subscription
    WHERE subscriber_id = %(subscriber)s::bigint AND mode = 'PULL'
        AND (%(subscription)s::bigint IS NULL OR id = %(subscription)s::bigint)
), waiting AS MATERIALIZED (
    SELECT count(*) AS available, min(delivery.id) AS oldest
    FROM mailbox
    CROSS JOIN LATERAL (
        SELECT id
        FROM delivery_delivery
        WHERE subscription_id BETWEEN mailbox.id AND mailbox.id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
        ORDER BY subscription_id, id
        LIMIT %(limit)s::int
    ) AS delivery
    WHERE mailbox.is_active
), delayed AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE delivery.next_attempt_at <= now()) AS available, min(delivery.id) AS oldest
    FROM mailbox
    CROSS JOIN LATERAL (
        SELECT id, next_attempt_at
        FROM delivery_delivery
        WHERE subscription_id BETWEEN mailbox.id AND mailbox.id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
        ORDER BY subscription_id, next_attempt_at
        LIMIT %(limit)s::int
    ) AS delivery
    WHERE mailbox.is_active
), leased AS MATERIALIZED (
    SELECT
        count(*) FILTER (WHERE delivery.lease_expires_at <= now() AND mailbox.is_active) AS available,
        count(*) FILTER (WHERE delivery.lease_expires_at > now()) AS in_flight,
        min(delivery.id) FILTER (WHERE delivery.lease_expires_at > now() OR mailbox.is_active) AS oldest
    FROM mailbox
    CROSS JOIN LATERAL (
        SELECT id, lease_expires_at
        FROM delivery_delivery
        WHERE subscription_id BETWEEN mailbox.id AND mailbox.id AND status = 'IN_FLIGHT'
        ORDER BY subscription_id, lease_expires_at, id
        LIMIT %(limit)s::int
    ) AS delivery
), rate AS MATERIALIZED (
    SELECT coalesce(sum(received), 0) AS received, coalesce(sum(acknowledged), 0) AS acknowledged
    FROM delivery_mailboxrate
    WHERE subscriber_id = %(subscriber)s::bigint
        AND at >= date_bin('10 seconds', now(), 'epoch') - interval '60 seconds'
        AND at < date_bin('10 seconds', now(), 'epoch')
)
SELECT
    waiting.available + delayed.available + leased.available, leased.in_flight,
    extract(epoch FROM now() - (
        SELECT least(message.published_at, now())
        FROM delivery_delivery delivery
        JOIN delivery_message message ON message.id = delivery.message_id
        WHERE delivery.id = least(waiting.oldest, delayed.oldest, leased.oldest)
    ))::float8,
    rate.received::int, rate.acknowledged::int
FROM waiting, delayed, leased, rate
