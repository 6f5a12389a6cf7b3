-- The lanes whose subscriber changed since that transaction, with the columns of their windows (see
-- `changed_subscriptions.sql`).
SELECT
    lane.id, subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send,
    subscriber.refill_level, subscriber.by_priority
FROM subscriptions_subscriber subscriber
JOIN delivery_lane lane ON lane.subscriber_id = subscriber.id
WHERE subscriber.changed_in >= %(horizon)s::bigint
