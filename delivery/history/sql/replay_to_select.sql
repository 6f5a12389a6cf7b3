-- The selection criteria of a replay, and the destinations whose messages are for the replay's
-- subscription.
SELECT
    replay.state, replay.since, replay.until,
    ARRAY(SELECT jsonb_array_elements_text(replay.event_types)) AS event_types,
    replay.filter, replay.header_filter_string,
    ARRAY[
        subscriber.name, subscriber.name || '/' || subscription.name, subscriber.application
    ] AS destinations
FROM delivery_replay replay
JOIN subscriptions_subscription subscription ON subscription.id = replay.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
WHERE replay.id = %(replay)s
