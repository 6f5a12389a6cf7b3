-- Stores messages with every delivery they owe, all or nothing, in the order given.
-- What nobody wants is in the journal, unless Inturn itself published it.
-- `numbered` draws the ids in publication order, and deliveries are numbered in the same order, so
-- that within a lane the order of ids is the order of publication. What has a group is of a QUEUE: it goes
-- to the queue sender that the message's id says. What is pulled is in no lane but in a mailbox. A VOLATILE one belongs to the
-- server that runs now: its successor does not send it.
WITH drafts AS (
    SELECT *
    FROM unnest(
        %(ordinal)s::int[], %(event_type)s::bigint[], %(headers)s::text[]::jsonb[], %(content_type)s::text[],
        %(body)s::bytea[], %(destination)s::text[], %(is_volatile)s::bool[]
    ) AS draft (ordinal, event_type_id, headers, content_type, body, destination, is_volatile)
    ORDER BY ordinal
), numbered AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('delivery_message', 'id')) AS id, drafts.* FROM drafts
), messages AS (
    INSERT INTO delivery_message (
        id, event_type_id, publisher_id, headers, content_type, body, destination, published_at, owed, transaction_id,
        seen_before
    )
    OVERRIDING SYSTEM VALUE
    SELECT
        id, event_type_id, %(publisher)s::bigint, headers, content_type, body, destination,
        -- Asked once: as the column's default it would be asked for each.
        (SELECT delivery_clock()),
        (SELECT count(*) FROM unnest(%(match_ordinal)s::int[]) AS owed WHERE owed = ordinal),
        (SELECT pg_current_xact_id()::text::bigint), (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
    FROM numbered
), owed AS (
    SELECT
        numbered.id AS message_id, match.subscription_id, match.queue_group,
        CASE WHEN match.is_pull THEN NULL WHEN match.queue_group IS NULL THEN lane.id ELSE queue.id END AS lane_id,
        statement_timestamp() + make_interval(secs => match.seconds_to_live) AS expires_at,
        CASE WHEN numbered.is_volatile THEN pg_postmaster_start_time() END AS server_started_at
    FROM unnest(
        %(match_ordinal)s::int[], %(match_subscription)s::bigint[], %(match_subscriber)s::bigint[],
        %(match_group)s::smallint[], %(match_is_pull)s::bool[], %(match_seconds_to_live)s::float8[]
    ) WITH ORDINALITY AS match (
        ordinal, subscription_id, subscriber_id, queue_group, is_pull, seconds_to_live, place
    )
    JOIN numbered USING (ordinal)
    LEFT JOIN delivery_lane lane ON lane.subscriber_id = match.subscriber_id
    LEFT JOIN delivery_lane queue
        ON queue.kind = 'QUEUE' AND match.queue_group IS NOT NULL AND queue.number = numbered.id %% (
            SELECT count(*) FROM delivery_lane WHERE kind = 'QUEUE' AND number < %(queue_senders)s
        )
    ORDER BY match.place
), deliveries AS (
    INSERT INTO delivery_delivery (
        message_id, subscription_id, lane_id, queue_group, expires_at, server_started_at, status, attempts, skipped,
        redelivery, reason, receive_count
    )
    SELECT
        message_id, subscription_id, lane_id, queue_group, expires_at, server_started_at, 'PENDING', 0, false,
        '', '', 0
    FROM owed
    RETURNING lane_id
), unmatched AS (
    INSERT INTO delivery_journalentry (kind, text, actor, message_id)
    SELECT
        'UNMATCHED', 'Nobody wants msg_' || id || CASE
            WHEN destination = '' THEN ': no subscription qualifies.'
            ELSE ', which was delivered to ' || destination || ': no subscription there qualifies.'
        END, '', id
    FROM numbered
    WHERE ordinal <> ALL (%(match_ordinal)s::int[]) AND %(publisher)s::bigint IS NOT NULL
)
SELECT
    (SELECT array_agg(id ORDER BY ordinal) FROM numbered) AS message_ids,
    (SELECT array_agg(DISTINCT lane_id) FROM deliveries WHERE lane_id IS NOT NULL) AS lane_ids
