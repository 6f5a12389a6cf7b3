-- Stores an edited copy of a message with a delivery, to the subscription of a settled delivery of
-- the original. Returns nothing if the original delivery is open, because then both would be sent,
-- or if it is in no lane. The copy of a QUEUE message has one group, of this single endpoint; the
-- copy of a callback's answer goes to the same callback; the copy of a pulled message goes into the
-- mailbox. It gets the time to live of a new message, but even if the event type is VOLATILE it
-- survives a restart of the server, because a person sends it.
WITH original AS MATERIALIZED (
    SELECT
        delivery.message_id, message.event_type_id, delivery.subscription_id, delivery.queue_group,
        delivery.callback_id, subscription.subscriber_id, subscription.mode = 'PULL' AS is_pull
    FROM delivery_settled delivery
    CROSS JOIN LATERAL delivery_read_message(delivery.message_id) AS message
    JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
    WHERE delivery.id = %(delivery)s AND (
        delivery.lane_id IS NOT NULL OR subscription.mode = 'PULL' OR subscription.join_mode = 'ALL'
    )
    FOR NO KEY UPDATE OF delivery
), copied AS (
    INSERT INTO delivery_message (
        event_type_id, edited_from_id, headers, content_type, body, owed, transaction_id,
        seen_before
    )
    SELECT
        event_type_id, message_id, %(headers)s::text::jsonb, %(content_type)s::text,
        %(body)s::bytea, 1, pg_current_xact_id()::text::bigint,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    FROM original
    RETURNING id
)
INSERT INTO delivery_waiting (
    id, message_id, subscription_id, lane_id, queue_group, callback_id, expires_at, status,
    attempts, skipped, redelivery, reason, receive_count
)
SELECT
    copied.id << 20, copied.id, original.subscription_id,
    CASE
        WHEN original.is_pull THEN NULL
        WHEN original.queue_group IS NOT NULL THEN queue.id
        WHEN original.callback_id IS NOT NULL THEN callback.id
        ELSE own.id
    END,
    CASE WHEN original.queue_group IS NOT NULL THEN 0 END, original.callback_id,
    now() + least(
        make_interval(secs => event_type.ttl_seconds),
        CASE WHEN original.is_pull THEN make_interval(days => %(mailbox_days)s::int) END
    ),
    'PENDING', 0, false, '', '', 0
FROM original
CROSS JOIN copied
JOIN subscriptions_eventtype event_type ON event_type.id = original.event_type_id
JOIN delivery_lane own ON own.subscriber_id = original.subscriber_id
JOIN delivery_lane callback ON callback.kind = 'CALLBACK' AND callback.number = 0
JOIN delivery_lane queue
    ON queue.kind = 'QUEUE' AND queue.number = copied.id %% (
        SELECT count(*) FROM delivery_lane WHERE kind = 'QUEUE' AND number < %(queue_senders)s
    )
RETURNING message_id, id, lane_id, (SELECT subscriber_id FROM original)
