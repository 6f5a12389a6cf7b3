-- Whether all sending is HELD, and the number of HELD subscribers and subscriptions. Uses
-- subscriber_held and subscription_held.
SELECT
    EXISTS (
        SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD'
    ) AS is_sending_held,
    (
        SELECT count(*)
        FROM subscriptions_subscriber
        WHERE id > 0 AND status <> 'ACTIVE' AND status = 'HELD'
    ) AS subscribers,
    (
        SELECT count(*) FROM subscriptions_subscription WHERE id > 0 AND status = 'HELD'
    ) AS subscriptions
