-- How the lanes of subscribers that changed since that transaction are to be served (see `changed_subscriptions.sql`).
SELECT
    lane.id, subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send, subscriber.refill_level
FROM subscriptions_subscriber subscriber
JOIN delivery_lane lane ON lane.subscriber_id = subscriber.id
WHERE subscriber.changed_in >= %(horizon)s::bigint
