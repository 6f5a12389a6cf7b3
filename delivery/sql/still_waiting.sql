-- Which of these deliveries still wait in their lane to be sent: PENDING, and of an ACTIVE subscription.
SELECT delivery.id
FROM delivery_waiting delivery
JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
WHERE delivery.id = ANY (%(delivery)s::bigint[]) AND delivery.lane_id = %(lane)s
    AND delivery.status = 'PENDING' AND subscription.status = 'ACTIVE' AND subscription.cancellation_id IS NULL
