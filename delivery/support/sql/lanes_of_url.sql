-- The lanes in which deliveries to a URL may wait; finds the URL's subscriptions on the index
-- subscription_url.
SELECT DISTINCT place.lane_id
FROM subscriptions_subscription subscription
JOIN delivery_subscriptionlane place ON place.subscription_id = subscription.id
WHERE subscriptions_url(subscription.endpoint) = %(url)s
