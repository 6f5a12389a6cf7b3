-- Deletes configuration transactions no longer cached by any process, returns their number; see
-- `delivery.incoming.short_way.cache`.
WITH forgotten AS (
    DELETE FROM subscriptions_configurationtransaction
    WHERE changed_at < now() - interval '1 hour'
    RETURNING id
)
SELECT count(*) FROM forgotten
