-- The facts on the card of the first steps: whether any delivery was ever DELIVERED, by the totals
-- of the chores, or since; and the objects apart from Inturn's own event types.
SELECT
    EXISTS (SELECT FROM delivery_trafficmark WHERE id = 1 AND delivered > 0)
    OR EXISTS (
        SELECT FROM delivery_settled
        WHERE status = 'DELIVERED'
            AND settled_at >= coalesce(
                (SELECT until FROM delivery_trafficmark WHERE id = 1), '-infinity'
            )
    ) AS is_delivered,
    EXISTS (
        SELECT FROM subscriptions_eventtype
        WHERE id > 0 AND NOT starts_with(name, %(reserved)s)
    ) AS has_event_type,
    EXISTS (SELECT FROM subscriptions_publisher WHERE id > 0) AS has_publisher,
    (
        SELECT subscription.event_type_id
        FROM subscriptions_subscription subscription
        JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
        WHERE subscription.id > 0 AND NOT starts_with(event_type.name, %(reserved)s)
        ORDER BY subscription.id DESC
        LIMIT 1
    ) AS subscribed_id
