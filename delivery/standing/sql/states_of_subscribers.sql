-- The states of each subscriber's subscriptions, for all subscribers: about 150 ms for 10,000.
SELECT subscriber_id, array_agg(DISTINCT state) AS states
FROM delivery_subscriptionstanding
GROUP BY subscriber_id
