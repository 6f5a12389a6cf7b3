-- Stores the answer to a callback with a delivery, once: of several posts at a time the first
-- changes the row. The others wait for it at the UPDATE, find the row answered, and store nothing.
-- If the answer names a URL for an answer to itself, the next callback of the chain is stored as
-- well.
WITH drawn AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('delivery_message', 'id')) AS id
), answered AS (
    UPDATE delivery_callback callback
    SET answer_id = drawn.id, answered_at = statement_timestamp()
    FROM drawn
    WHERE callback.id = %(callback)s AND callback.answered_at IS NULL
        AND callback.expires_at > statement_timestamp()
    RETURNING callback.id, callback.message_id, callback.answer_id
), messages AS (
    INSERT INTO delivery_message (
        id, event_type_id, headers, content_type, body, owed, transaction_id, seen_before
    )
    OVERRIDING SYSTEM VALUE
    SELECT
        answered.answer_id, subscription.event_type_id, %(headers)s::text::jsonb,
        %(content_type)s::text, %(body)s::bytea, 1, pg_current_xact_id()::text::bigint,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    FROM answered
    JOIN subscriptions_subscription subscription ON subscription.id = %(subscription)s
), deliveries AS (
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, lane_id, callback_id, status, attempts, skipped,
        redelivery, reason, receive_count
    )
    SELECT
        answered.answer_id << 20, answered.answer_id, %(subscription)s, lane.id, answered.id,
        'PENDING', 0, false, '', '', 0
    FROM answered
    JOIN delivery_lane lane ON lane.kind = 'CALLBACK'
    RETURNING id, lane_id
), chained AS (
    INSERT INTO delivery_callback (message_id, queue_group, url, hop, expires_at)
    SELECT
        answer_id, 0, %(next_url)s::text, %(next_hop)s::smallint,
        statement_timestamp() + make_interval(days => %(days)s)
    FROM answered
    WHERE %(next_url)s::text IS NOT NULL
), noted AS (
    INSERT INTO delivery_journalentry (kind, text, actor, message_id, delivery_id)
    SELECT
        'CALLBACK', 'Callback for msg_' || answered.message_id || ' received; forwarded as msg_'
            || answered.answer_id || '.', '', answered.message_id, deliveries.id
    FROM answered, deliveries
)
SELECT answered.answer_id, deliveries.lane_id FROM answered, deliveries
