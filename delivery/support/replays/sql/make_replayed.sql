-- Creates a delivery of each of these messages for a replay's subscription, in the order of their
-- ids, and writes it into the item. Returns the messages with a new delivery, and the lanes.
-- Execute it after `lock_replay.sql` or an equivalent lock, with the messages locked. It creates
-- only missing deliveries of existing messages: a delivery's id follows from message and replay, so
-- each is created once. A delivery goes where a new delivery of the subscription would go: to the
-- subscriber's lane, to the mailbox, or to the queue lane selected by the message's id. There it is
-- a separate group with this single endpoint, and with a number unused by other groups of the
-- message: by no group in PostgreSQL nor, below 1000, by an archived group. Replayed deliveries
-- were requested by a person: they have no time to live except a mailbox's, and survive a restart
-- of the server.
-- Without partition pruning: see `delivery.database`.
WITH wanted AS MATERIALIZED (
    SELECT
        message.id AS message_id, replay.id AS replay_id, replay.subscription_id,
        subscription.mode = 'PULL' AS is_pull, event_type.kind = 'QUEUE' AS is_queue,
        subscription.subscriber_id
    FROM delivery_replayitem item
    JOIN delivery_replay replay ON replay.id = item.replay_id
    JOIN delivery_message message ON message.id = item.message_id
    JOIN subscriptions_subscription subscription ON subscription.id = replay.subscription_id
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    WHERE item.replay_id = %(replay)s AND item.message_id = ANY (%(message)s::bigint[])
        AND item.delivery_id IS NULL
        AND NOT EXISTS (
            SELECT FROM delivery_delivery WHERE id = item.message_id << 20 | 524288 | item.replay_id
        )
), made AS (
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, replay_id, lane_id, queue_group, expires_at, status,
        attempts, skipped, redelivery, reason, receive_count
    )
    SELECT
        wanted.message_id << 20 | 524288 | wanted.replay_id, wanted.message_id,
        wanted.subscription_id, wanted.replay_id,
        CASE WHEN wanted.is_pull THEN NULL WHEN wanted.is_queue THEN queue.id ELSE own.id END,
        CASE WHEN wanted.is_queue THEN greatest(
            1000 + wanted.replay_id %% 30000,
            (
                SELECT max(queue_group) + 1
                FROM delivery_delivery
                WHERE id BETWEEN wanted.message_id << 20 AND wanted.message_id << 20 | 1048575
            )
        ) END,
        CASE WHEN wanted.is_pull THEN now() + make_interval(days => %(mailbox_days)s::int) END,
        'PENDING', 0, false, '', '', 0
    FROM wanted
    JOIN delivery_lane own ON own.subscriber_id = wanted.subscriber_id
    JOIN delivery_lane queue
        ON queue.kind = 'QUEUE' AND queue.number = wanted.message_id %% (
            SELECT count(*) FROM delivery_lane WHERE kind = 'QUEUE' AND number < %(queue_senders)s
        )
    ORDER BY wanted.message_id
    RETURNING id, message_id, replay_id, lane_id
), items AS (
    UPDATE delivery_replayitem item
    SET delivery_id = made.id
    FROM made
    WHERE item.replay_id = made.replay_id AND item.message_id = made.message_id
        AND item.delivery_id IS NULL
    RETURNING item.message_id
)
SELECT
    ARRAY(SELECT message_id FROM items) AS made,
    ARRAY(SELECT DISTINCT lane_id FROM made WHERE lane_id IS NOT NULL) AS lane_ids
