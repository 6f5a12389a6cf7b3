-- Returns the reason against the removal of a range of messages as a whole, or null. The conditions
-- are those of `ripe_messages.sql` and `remove_messages.sql`, evaluated for all messages of the
-- range at once; `ahead` evaluates them for a later or earlier time. An edited copy or an answer in
-- another range keeps the range: those are removed singly, with the messages belonging to them.
-- Nothing is locked. Cheap conditions come first; the two conditions over all deliveries read each
-- once, by hash joins. The parameters choose the partitions before the statement runs.
WITH rules AS MATERIALIZED (
    SELECT key AS status, value::timestamptz AS until FROM jsonb_each_text(%(until)s::jsonb)
)
SELECT CASE
    WHEN (SELECT last_value FROM delivery_message_id_seq) < %(until_id)s::bigint
        THEN 'messages to come'
    WHEN EXISTS (
        SELECT FROM delivery_waiting
        WHERE id >= %(first_delivery)s::bigint AND id < %(until_delivery)s::bigint
    ) THEN 'open deliveries'
    WHEN EXISTS (
        SELECT FROM delivery_settled
        WHERE id >= %(first_delivery)s::bigint AND id < %(until_delivery)s::bigint
            AND settled_at >= %(newest_until)s::timestamptz
    ) THEN 'young deliveries'
    WHEN EXISTS (
        SELECT FROM delivery_idempotencykey
        WHERE message_id >= %(first_id)s::bigint AND message_id < %(until_id)s::bigint
    ) THEN 'idempotency keys'
    WHEN EXISTS (
        SELECT FROM delivery_callback
        WHERE message_id >= %(first_id)s::bigint AND message_id < %(until_id)s::bigint AND (
            expires_at > now() + %(ahead)s::interval - interval '1 hour'
            OR answer_id < %(first_id)s::bigint
            OR answer_id >= %(until_id)s::bigint
        )
    ) THEN 'callbacks'
    WHEN EXISTS (
        SELECT FROM delivery_callback
        WHERE answer_id >= %(first_id)s::bigint AND answer_id < %(until_id)s::bigint
            AND (message_id < %(first_id)s::bigint OR message_id >= %(until_id)s::bigint)
    ) THEN 'answers'
    WHEN EXISTS (
        SELECT FROM delivery_message
        WHERE edited_from_id >= %(first_id)s::bigint AND edited_from_id < %(until_id)s::bigint
            AND (id < %(first_id)s::bigint OR id >= %(until_id)s::bigint)
    ) THEN 'edited copies'
    WHEN EXISTS (
        SELECT
        FROM delivery_replayitem item
        JOIN delivery_replay replay ON replay.id = item.replay_id
        WHERE item.message_id >= %(first_id)s::bigint AND item.message_id < %(until_id)s::bigint
            AND item.delivery_id IS NULL AND replay.state = 'RUNNING'
    ) THEN 'replays'
    WHEN EXISTS (
        SELECT FROM delivery_earliersettlement
        WHERE delivery_id >= %(first_delivery)s::bigint AND delivery_id < %(until_delivery)s::bigint
            AND NOT is_amended AND settled_at >= %(archived_until)s::timestamptz
    ) THEN 'settlements that are not archived'
    WHEN EXISTS (
        SELECT FROM delivery_failurenotice
        WHERE delivery_id >= %(first_delivery)s::bigint AND delivery_id < %(until_delivery)s::bigint
    ) THEN 'failure notices'
    WHEN EXISTS (
        SELECT FROM delivery_lane
        WHERE state IN ('BLOCKED', 'SUSPENDED')
            AND delivery_id >= %(first_delivery)s::bigint
            AND delivery_id < %(until_delivery)s::bigint
    ) THEN 'stopped lanes'
    WHEN EXISTS (
        SELECT
        FROM delivery_resubmission running
        JOIN delivery_settled delivery
            ON delivery.id > running.position AND delivery.id <= running.last_id
        WHERE running.state = 'RUNNING'
            AND delivery.id >= %(first_delivery)s::bigint
            AND delivery.id < %(until_delivery)s::bigint
            AND delivery.status = ANY (%(resubmittable)s::text[])
    ) THEN 'resubmissions'
    WHEN EXISTS (
        -- If no window of duplicates reaches the messages, no subscription is read.
        SELECT FROM delivery_message
        WHERE id >= %(first_id)s::bigint AND id < %(until_id)s::bigint AND published_at > (
            SELECT
                now() + %(ahead)s::interval - interval '1 hour'
                    - make_interval(secs => max(dedup_window_seconds))
            FROM subscriptions_subscription
            WHERE dedup_mode <> 'NONE'
        )
    ) AND EXISTS (
        SELECT
        FROM subscriptions_subscription subscription
        JOIN delivery_settled delivery ON delivery.subscription_id = subscription.id
        JOIN delivery_message message ON message.id = delivery.message_id
        WHERE subscription.dedup_mode <> 'NONE'
            AND delivery.id >= %(first_delivery)s::bigint
            AND delivery.id < %(until_delivery)s::bigint
            AND message.id >= %(first_id)s::bigint AND message.id < %(until_id)s::bigint
            AND message.published_at
                > now() + %(ahead)s::interval - interval '1 hour'
                    - make_interval(secs => subscription.dedup_window_seconds)
    ) THEN 'windows of duplicates'
    WHEN EXISTS (
        SELECT
        FROM delivery_settled delivery
        LEFT JOIN rules ON rules.status = delivery.status
        WHERE delivery.id >= %(first_delivery)s::bigint AND delivery.id < %(until_delivery)s::bigint
            AND NOT coalesce(delivery.settled_at < rules.until, false)
    ) THEN 'deliveries'
    WHEN EXISTS (
        SELECT
        FROM delivery_message message
        WHERE message.id >= %(first_id)s::bigint AND message.id < %(until_id)s::bigint
            AND NOT coalesce(message.published_at < %(unmatched_until)s::timestamptz, false)
            AND NOT EXISTS (
                SELECT FROM delivery_settled delivery
                WHERE delivery.message_id = message.id
                    AND delivery.id >= %(first_delivery)s::bigint
                    AND delivery.id < %(until_delivery)s::bigint
            )
    ) THEN 'messages that nobody wanted'
END AS kept
