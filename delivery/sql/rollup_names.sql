-- What the subscriptions are called, and what they are for, now.
SELECT
    subscription.id AS subscription_id, subscriber.name AS subscriber, subscription.name AS subscription,
    event_type.name AS event_type, subscription.endpoint
FROM subscriptions_subscription subscription
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
