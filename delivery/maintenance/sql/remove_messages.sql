-- Removes the removable among the locked messages, with their deliveries, attempts, script outputs,
-- callbacks and notes of replies; returns the numbers of messages, deliveries and attempts. Execute
-- it after `lock_for_removal.sql`, with the rows locked there. A message stays if a delivery of it
-- is not locked or not settled long enough, or for one of the reasons below; messages not removable
-- without it stay, too. An hour is added to each expiry: a transaction begun in time may still be
-- under way.
-- Without partition pruning: see `delivery.database`.
WITH RECURSIVE members AS MATERIALIZED (
    SELECT id, published_at FROM delivery_message WHERE id = ANY (%(messages)s::bigint[])
), running AS MATERIALIZED (
    SELECT position, last_id FROM delivery_resubmission WHERE state = 'RUNNING'
), staying AS (
    SELECT member.id
    FROM members AS member
    WHERE NOT coalesce(
        (
            SELECT bool_and(
                id = ANY (%(deliveries)s::bigint[])
                AND coalesce(settled_at < (%(until)s::jsonb ->> status)::timestamptz, false)
            )
            FROM delivery_delivery
            WHERE id BETWEEN member.id << 20 AND member.id << 20 | 1048575
        ),
        member.published_at < %(unmatched_until)s::timestamptz,
        false
    )
    OR EXISTS (
        -- A publisher who repeats the request gets the first answer.
        SELECT FROM delivery_idempotencykey WHERE message_id = member.id
    )
    OR EXISTS (
        -- The endpoint may answer, or repeat an answer.
        SELECT FROM delivery_callback
        WHERE message_id = member.id AND expires_at > now() - interval '1 hour'
    )
    OR EXISTS (
        -- A RUNNING replay is going to deliver it. A replay nobody has started may wait for ever:
        -- it will find the message in the archive.
        SELECT
        FROM delivery_replayitem item
        JOIN delivery_replay replay ON replay.id = item.replay_id
        WHERE item.message_id = member.id AND item.delivery_id IS NULL AND replay.state = 'RUNNING'
    )
    OR EXISTS (
        SELECT
        FROM delivery_delivery delivery
        JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
        WHERE delivery.id BETWEEN member.id << 20 AND member.id << 20 | 1048575 AND (
            -- A second message within the window is compared with it.
            (
                subscription.dedup_mode <> 'NONE' AND member.published_at
                    > now() - interval '1 hour'
                        - make_interval(secs => subscription.dedup_window_seconds)
            )
            -- A person ended a settlement of it, not yet archived.
            OR EXISTS (
                SELECT
                FROM delivery_earliersettlement
                WHERE delivery_id = delivery.id AND NOT is_amended
                    AND settled_at >= %(archived_until)s::timestamptz
            )
            -- The failure is still to be published.
            OR EXISTS (SELECT FROM delivery_failurenotice WHERE delivery_id = delivery.id)
            -- It is the reason why a lane is stopped.
            OR EXISTS (
                SELECT FROM delivery_lane
                WHERE state IN ('BLOCKED', 'SUSPENDED') AND delivery_id = delivery.id
            )
            -- A running resubmission has counted it.
            OR EXISTS (
                SELECT FROM running
                WHERE delivery.id > running.position AND delivery.id <= running.last_id
                    AND delivery.status = ANY (%(resubmittable)s::text[])
            )
        )
    )
    OR EXISTS (
        -- A referring message is not locked.
        SELECT FROM delivery_message
        WHERE edited_from_id = member.id AND id <> ALL (%(messages)s::bigint[])
        UNION ALL
        SELECT FROM delivery_callback
        WHERE message_id = member.id AND answer_id <> ALL (%(messages)s::bigint[])
        UNION ALL
        SELECT FROM delivery_callback
        WHERE answer_id = member.id AND message_id <> ALL (%(messages)s::bigint[])
    )
    UNION
    SELECT other.id
    FROM staying
    CROSS JOIN LATERAL (
        SELECT edited_from_id AS id
        FROM delivery_message
        WHERE id = staying.id AND edited_from_id IS NOT NULL
        UNION ALL
        SELECT answer_id
        FROM delivery_callback
        WHERE message_id = staying.id AND answer_id IS NOT NULL
        UNION ALL
        SELECT message_id FROM delivery_callback WHERE answer_id = staying.id
    ) AS other
), going AS MATERIALIZED (
    SELECT id FROM members EXCEPT SELECT id FROM staying
), deliveries AS (
    DELETE FROM delivery_settled delivery
    USING going
    WHERE delivery.id BETWEEN going.id << 20 AND going.id << 20 | 1048575
    RETURNING delivery.id, delivery.started_at
), attempts AS (
    DELETE FROM delivery_loggedattempt attempt
    USING going
    WHERE attempt.delivery_id BETWEEN going.id << 20 AND going.id << 20 | 1048575
    RETURNING attempt.delivery_id
), outputs AS (
    DELETE FROM delivery_scriptoutput output
    USING going
    WHERE output.delivery_id BETWEEN going.id << 20 AND going.id << 20 | 1048575
), earlier AS (
    DELETE FROM delivery_earliersettlement
    WHERE delivery_id = ANY (ARRAY(SELECT id FROM deliveries))
), callbacks AS (
    DELETE FROM delivery_callback WHERE message_id = ANY (ARRAY(SELECT id FROM going))
), replies AS (
    DELETE FROM delivery_reply WHERE message_id = ANY (ARRAY(SELECT id FROM going))
), messages AS (
    DELETE FROM delivery_message WHERE id = ANY (ARRAY(SELECT id FROM going)) RETURNING id
)
SELECT
    (SELECT count(*) FROM messages) AS messages,
    (SELECT count(*) FROM deliveries) AS deliveries,
    (SELECT count(*) FROM attempts) + (SELECT count(started_at) FROM deliveries) AS attempts
