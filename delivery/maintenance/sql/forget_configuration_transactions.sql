-- Deletes what nobody remembers any more (see `delivery.ingest.directory`), and returns how many.
WITH forgotten AS (
    DELETE FROM subscriptions_configurationtransaction WHERE changed_at < now() - interval '1 hour' RETURNING id
)
SELECT count(*) FROM forgotten
