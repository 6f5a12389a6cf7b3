-- The subscribers other than ACTIVE and the HELD subscriptions, with the newest journal entry about
-- it; uses subscriber_held, subscription_held, journal_of_lane and journal_of_subscription.
-- INACTIVE subscriptions are left out: there may be thousands, and no messages are kept for them.
SELECT held.*, change.at AS since, change.actor
FROM (
    (
        SELECT
            'subscriber' AS kind, subscriber.id, subscriber.name, subscriber.status,
            subscriber.held_until AS until, subscriber.catch_up_rate, lane.id AS lane_id
        FROM subscriptions_subscriber subscriber
        JOIN delivery_lane lane ON lane.subscriber_id = subscriber.id
        WHERE subscriber.status <> 'ACTIVE'
        ORDER BY subscriber.id
        LIMIT %(rows)s
    )
    UNION ALL
    (
        SELECT
            'subscription', subscription.id, subscriber.name || '/' || subscription.name,
            subscription.status, subscription.held_until, subscription.catch_up_rate, NULL::bigint
        FROM subscriptions_subscription subscription
        JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
        WHERE subscription.status = 'HELD'
        ORDER BY subscription.id
        LIMIT %(rows)s
    )
) AS held
LEFT JOIN LATERAL (
    (
        SELECT at, actor
        FROM delivery_journalentry
        WHERE held.kind = 'subscriber' AND lane_id = held.lane_id
            AND kind IN ('HELD', 'DEACTIVATED')
        ORDER BY lane_id, id DESC
        LIMIT 1
    )
    UNION ALL
    (
        SELECT at, actor
        FROM delivery_journalentry
        WHERE held.kind = 'subscription' AND subscription_id = held.id
            AND kind IN ('HELD', 'DEACTIVATED')
        ORDER BY subscription_id, id DESC
        LIMIT 1
    )
) AS change ON true
ORDER BY held.kind, held.id
LIMIT %(rows)s
