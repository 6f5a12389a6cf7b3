-- Stores a SYNC message with a single delivery, before the endpoint is called; without a
-- subscription, only the message. From then on the endpoint may have been called, so the delivery
-- is IN_DOUBT until `settle_sync.sql` records the answer. It is in no lane: no sender ever sees it.
-- IN_DOUBT is reported if no answer is recorded within so many seconds. Stores and returns nothing
-- if the subscription was deleted.
WITH held AS MATERIALIZED (
    SELECT id FROM subscriptions_subscription WHERE id = %(subscription)s::bigint FOR KEY SHARE
), message AS (
    INSERT INTO delivery_message (
        event_type_id, publisher_id, headers, content_type, body, destination, owed, transaction_id,
        seen_before
    )
    SELECT
        %(event_type)s::bigint, %(publisher)s::bigint, %(headers)s::text::jsonb,
        %(content_type)s::text, %(body)s::bytea, %(destination)s::text,
        CASE WHEN %(subscription)s::bigint IS NULL THEN 0 ELSE 1 END,
        pg_current_xact_id()::text::bigint, pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    WHERE %(subscription)s::bigint IS NULL OR EXISTS (SELECT FROM held)
    RETURNING id
), delivery AS (
    INSERT INTO delivery_settled (
        id, message_id, subscription_id, status, settled_at, attempts, skipped, redelivery, reason,
        receive_count
    )
    SELECT
        id << 20, id, %(subscription)s::bigint, 'IN_DOUBT', (SELECT delivery_clock()), 0, false, '',
        %(reason)s::text, 0
    FROM message
    WHERE %(subscription)s::bigint IS NOT NULL
    RETURNING id
), notice AS (
    INSERT INTO delivery_failurenotice (delivery_id, number, due_at)
    SELECT id, 0, now() + make_interval(secs => %(seconds)s::float8) FROM delivery
), unmatched AS (
    INSERT INTO delivery_journalentry (kind, text, actor, message_id, subscription_id)
    SELECT
        'UNMATCHED', 'msg_' || id || CASE
            WHEN %(destination)s::text = '' THEN ' matched no subscription.'
            WHEN %(why_not)s::text = '' THEN
                ', delivered to ' || %(destination)s::text || ', matched no subscription there.'
            ELSE ', delivered to ' || %(destination)s::text
                || ', did not match it: ' || %(why_not)s::text || '.'
        END, '', id, %(named)s::bigint
    FROM message
    WHERE %(subscription)s::bigint IS NULL
), ambiguous AS (
    INSERT INTO delivery_journalentry (kind, text, actor, message_id, delivery_id, subscription_id)
    SELECT
        'AMBIGUOUS',
        'Several subscriptions match msg_' || message.id || '; the first is called: '
            || array_to_string(%(qualified)s::text[], ', ') || '.',
        '', message.id, delivery.id, %(subscription)s::bigint
    FROM message, delivery
    WHERE cardinality(%(qualified)s::text[]) > 1
)
SELECT message.id, delivery.id FROM message LEFT JOIN delivery ON true
