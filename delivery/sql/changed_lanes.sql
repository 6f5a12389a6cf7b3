-- How the lanes of subscribers that changed lately are to be served. The window overlaps the last call amply: a change
-- becomes visible later than its time says. Leans on subscriber_changed.
SELECT
    lane.id, subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send, subscriber.refill_level
FROM subscriptions_subscriber subscriber
JOIN delivery_lane lane ON lane.subscriber_id = subscriber.id
WHERE subscriber.updated_at > now() - make_interval(secs => %(seconds)s)
