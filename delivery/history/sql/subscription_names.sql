-- The current names and settings of the subscriptions: `CALLED` of delivery/history/schemas.py.
SELECT
    subscription.id AS subscription_id, subscription.subscriber_id, subscriber.name AS subscriber,
    subscriber.processing, subscription.name AS subscription, subscription.mode,
    event_type.name AS event_type, event_type.kind, subscription.endpoint
FROM subscriptions_subscription subscription
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
