-- Extends leases by their receipts, counted from now. Returns the state of each requested delivery
-- as locked, before the change. A receipt is valid as long as nobody has fetched the delivery
-- again, also after the visibility. Locks as `end_fetches.sql` does. Leans on the primary key.
WITH held AS MATERIALIZED (
    SELECT delivery.id, delivery.status, delivery.receive_count, delivery.lease_token
    FROM delivery_delivery delivery
    JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
    WHERE delivery.id = ANY (%(delivery)s::bigint[])
        AND subscription.subscriber_id = %(subscriber)s::bigint AND subscription.mode = 'PULL'
    ORDER BY delivery.id
    FOR NO KEY UPDATE OF delivery
), extended AS (
    UPDATE delivery_waiting delivery
    SET lease_expires_at = now() + make_interval(secs => %(visibility)s::int)
    FROM held
    JOIN unnest(%(delivery)s::bigint[], %(token)s::uuid[]) AS receipt (id, token)
        ON receipt.id = held.id AND receipt.token = held.lease_token
    WHERE delivery.id = held.id
)
SELECT id, status, receive_count, lease_token, NULL FROM held
