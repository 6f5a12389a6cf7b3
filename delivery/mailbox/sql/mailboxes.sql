-- Counts the deliveries in the mailbox of each of these PULL subscriptions, each count up to a
-- limit: available to the next fetch, released with a delay, leased, held; and returns the
-- publication time of the oldest message not held. Every count reads a single range of
-- delivery_in_mailbox, delivery_delayed or delivery_leased, so a deep mailbox costs no more than
-- the limit. `fetch.sql` explains the ranges.
SELECT
    subscription.subscriber_id,
    CASE WHEN mailbox.is_open THEN fresh.n + due.n + lapsed.n ELSE 0 END AS available,
    CASE WHEN mailbox.is_open THEN delayed.n ELSE 0 END AS delayed,
    CASE WHEN mailbox.is_open THEN 0 ELSE fresh.n + due.n + lapsed.n + delayed.n END AS held,
    leased.n AS in_flight,
    (
        SELECT message.published_at
        FROM delivery_waiting delivery
        CROSS JOIN LATERAL (
            SELECT published_at FROM delivery_message WHERE id = delivery.message_id LIMIT 1
        ) AS message
        WHERE delivery.id = CASE
            WHEN mailbox.is_open
            THEN least(fresh.oldest, due.oldest, lapsed.oldest, delayed.oldest, leased.oldest)
            ELSE leased.oldest
        END
    ) AS oldest_at
FROM subscriptions_subscription subscription
CROSS JOIN LATERAL (
    SELECT standing.status = 'ACTIVE' AND subscription.cancellation_id IS NULL AS is_open
    FROM subscriptions_standing standing
    WHERE standing.id = subscription.id
) AS mailbox
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(id) AS oldest FROM (
        SELECT id FROM delivery_waiting
        WHERE subscription_id BETWEEN subscription.id AND subscription.id AND status = 'PENDING'
            AND lane_id IS NULL AND next_attempt_at IS NULL
        ORDER BY subscription_id, id LIMIT %(limit)s + 1
    ) AS counted
) AS fresh
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(id) AS oldest FROM (
        SELECT id FROM delivery_waiting
        WHERE subscription_id = subscription.id AND next_attempt_at <= now()
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
        ORDER BY next_attempt_at LIMIT %(limit)s + 1
    ) AS counted
) AS due
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(id) AS oldest FROM (
        SELECT id FROM delivery_waiting
        WHERE subscription_id = subscription.id AND next_attempt_at > now()
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
        ORDER BY next_attempt_at LIMIT %(limit)s + 1
    ) AS counted
) AS delayed
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(id) AS oldest FROM (
        SELECT id FROM delivery_waiting
        WHERE subscription_id = subscription.id AND lease_expires_at <= now()
            AND status = 'IN_FLIGHT'
        ORDER BY lease_expires_at, id LIMIT %(limit)s + 1
    ) AS counted
) AS lapsed
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(id) AS oldest FROM (
        SELECT id FROM delivery_waiting
        WHERE subscription_id = subscription.id AND lease_expires_at > now()
            AND status = 'IN_FLIGHT'
        ORDER BY lease_expires_at, id LIMIT %(limit)s + 1
    ) AS counted
) AS leased
WHERE subscription.mode = 'PULL'
    AND (
        subscription.id = ANY (%(subscriptions)s::bigint[])
        OR subscription.subscriber_id = ANY (%(subscribers)s::bigint[])
    )
