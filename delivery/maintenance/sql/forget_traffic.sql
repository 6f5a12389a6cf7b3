-- Removes traffic counts shown by no chart any more. Leans on the primary key of minutes, and on
-- subscription_traffic_by_time.
WITH minutes AS (
    DELETE FROM delivery_trafficminute WHERE at < statement_timestamp() - interval '2 days'
)
DELETE FROM delivery_subscriptiontraffic WHERE at < statement_timestamp() - interval '26 hours'
