-- Stores messages with every delivery they owe, all or nothing, in the order given. A message
-- without deliveries gets a journal entry, unless Inturn itself published it; if the destination is
-- a subscription, the entry names it and why it did not qualify.
--
-- `numbered` draws the ids in publication order, and deliveries are numbered in the same order, so
-- within a lane the order of ids is the order of publication. A delivery with a group is of a QUEUE
-- message: the message's id selects the queue lane. A PULL delivery is in no lane but in a mailbox.
-- A VOLATILE delivery belongs to the present start of the server: a later server start does not
-- send it. The ids of an old broker's messages may have been reserved before
-- (`delivery.management.importing`). A message whose idempotency key was used within 24 hours is
-- not stored, and the id is null.
--
-- With a horizon: stores nothing unless the configuration is the same as when those numbers were
-- read, in this statement's own snapshot (see `delivery.incoming.short_way.cache`). It also stores
-- nothing if any of the subscriptions was deleted: they are locked here once, where a foreign key
-- of the deliveries would look up each.
--
-- With a channel it notifies the senders itself: see `delivery.lifecycle.notifier`.
--
-- A target has the values shared by the deliveries of many messages; a match is a message (by its
-- place) and a target.
WITH held AS MATERIALIZED (
    SELECT id
    FROM subscriptions_subscription
    WHERE id = ANY (%(subscriptions)s::bigint[])
    ORDER BY id
    FOR KEY SHARE
), drafts AS (
    SELECT *
    FROM unnest(
        %(ordinal)s::int[], %(publisher)s::bigint[], %(event_type)s::bigint[],
        %(headers)s::text[]::jsonb[], %(content_type)s::text[], %(body)s::bytea[],
        %(destination)s::text[], %(owed)s::int[], %(key)s::text[], %(digest)s::bytea[],
        %(named)s::bigint[], %(why_not)s::text[]
    ) AS draft (
        ordinal, publisher_id, event_type_id, headers, content_type, body, destination, owed, key,
        digest, named, why_not
    )
    WHERE (SELECT count(*) FROM held) = cardinality(%(subscriptions)s::bigint[]) AND (
        %(horizon)s::bigint IS NULL OR ARRAY(
            SELECT id
            FROM subscriptions_configurationtransaction
            WHERE id >= %(horizon)s::bigint
            ORDER BY id
        ) = %(seen)s::bigint[]
    )
    ORDER BY ordinal
), drawn AS MATERIALIZED (
    SELECT
        coalesce(
            (%(ids)s::bigint[])[ordinal + 1],
            nextval(pg_get_serial_sequence('delivery_message', 'id'))
        ) AS id, drafts.*
    FROM drafts
), taken AS (
    -- Like `take_keys` and `answer_keys` in one. In the order of the keys, so two groups never
    -- deadlock.
    INSERT INTO delivery_idempotencykey (
        publisher_id, key, digest, message_id, deliveries, created_at
    )
    SELECT publisher_id, key, digest, id, owed, now()
    FROM drawn
    WHERE key <> ''
    ORDER BY publisher_id, key
    ON CONFLICT (publisher_id, key) DO UPDATE
    SET
        digest = EXCLUDED.digest, message_id = EXCLUDED.message_id,
        deliveries = EXCLUDED.deliveries, created_at = now()
    WHERE delivery_idempotencykey.created_at < now() - interval '24 hours'
    RETURNING message_id
), numbered AS MATERIALIZED (
    SELECT * FROM drawn WHERE key = '' OR id IN (SELECT message_id FROM taken)
), messages AS (
    INSERT INTO delivery_message (
        id, event_type_id, publisher_id, headers, content_type, body, destination, published_at,
        owed, transaction_id, seen_before
    )
    OVERRIDING SYSTEM VALUE
    SELECT
        id, event_type_id, publisher_id, headers, content_type, body, destination,
        -- Evaluated once: as the column's default it would be evaluated for each row.
        (SELECT delivery_clock()), owed,
        (SELECT pg_current_xact_id()::text::bigint),
        (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
    FROM numbered
), answered AS MATERIALIZED (
    -- A match finds the message by place: hash joins are off, and a loop for each would be
    -- quadratic.
    SELECT array_agg(numbered.id ORDER BY drawn.ordinal) AS ids
    FROM drawn
    LEFT JOIN numbered ON numbered.id = drawn.id
), targets AS MATERIALIZED (
    SELECT array_agg(lane.id ORDER BY target.place) AS lane_ids
    FROM unnest(%(target_subscriber)s::bigint[]) WITH ORDINALITY AS target (subscriber_id, place)
    -- LATERAL with LIMIT: a plan made for a join while subscribers were few reads all lanes.
    LEFT JOIN LATERAL (
        SELECT id FROM delivery_lane WHERE subscriber_id = target.subscriber_id LIMIT 1
    ) AS lane ON true
), queue AS MATERIALIZED (
    SELECT array_agg(id ORDER BY number) AS lane_ids
    FROM delivery_lane
    WHERE kind = 'QUEUE' AND number < %(queue_senders)s
), matched AS (
    SELECT
        answered.ids[match.ordinal + 1] AS message_id, match.target, match.place,
        row_number() OVER (PARTITION BY match.ordinal ORDER BY match.place) AS number,
        -- No array has a priority if no target needs a priority.
        (%(priority)s::smallint[])[match.ordinal + 1] AS priority
    FROM answered, unnest(
        %(match_ordinal)s::int[], %(match_target)s::int[]
    ) WITH ORDINALITY AS match (ordinal, target, place)
    WHERE answered.ids[match.ordinal + 1] IS NOT NULL
), deliveries AS (
    -- Absent groups and times to live are -1: in an array with nulls each element is found by
    -- counting.
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, lane_id, queue_group, expires_at, server_started_at,
        status, attempts, skipped, redelivery, reason, receive_count, priority
    )
    SELECT
        message_id << 20 | (number - 1), message_id, (%(target_subscription)s::bigint[])[target],
        CASE
            WHEN (%(target_is_pull)s::bool[])[target] THEN NULL
            WHEN (%(target_group)s::smallint[])[target] < 0 THEN targets.lane_ids[target]
            ELSE queue.lane_ids[1 + message_id %% cardinality(queue.lane_ids)]
        END,
        nullif((%(target_group)s::smallint[])[target], -1),
        statement_timestamp()
            + make_interval(secs => nullif((%(target_seconds_to_live)s::float8[])[target], -1)),
        CASE WHEN (%(target_is_volatile)s::bool[])[target] THEN pg_postmaster_start_time() END,
        'PENDING', 0, false, '', '', 0,
        CASE WHEN (%(target_is_by_priority)s::bool[])[target] THEN priority END
    FROM matched, targets, queue
    ORDER BY place
    RETURNING lane_id
), unmatched AS (
    INSERT INTO delivery_journalentry (kind, text, actor, message_id, subscription_id)
    SELECT
        'UNMATCHED', 'msg_' || id || CASE
            WHEN destination = '' THEN ' matched no subscription.'
            WHEN why_not = ''
                THEN ', delivered to ' || destination || ', matched no subscription there.'
            ELSE ', delivered to ' || destination || ', did not match it: ' || why_not || '.'
        END, '', id, nullif(named, -1)
    FROM numbered
    WHERE owed = 0 AND publisher_id IS NOT NULL
)
SELECT
    (SELECT ids FROM answered) AS message_ids, notified.lane_ids,
    CASE WHEN %(channel)s::text <> '' AND notified.lane_ids IS NOT NULL
        THEN pg_notify(%(channel)s::text, 'work ' || array_to_string(notified.lane_ids, ','))
    END
FROM (
    SELECT array_agg(DISTINCT lane_id) AS lane_ids FROM deliveries WHERE lane_id IS NOT NULL
) AS notified
