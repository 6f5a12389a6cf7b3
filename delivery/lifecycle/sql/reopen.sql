-- Makes settled deliveries PENDING again at their old place, with a fresh budget of attempts, and
-- returns them with their lanes. Execute it after `lock_groups.sql`: a QUEUE group with a DELIVERED
-- is not sent again. A delivery failed in the retry lane returns to the subscriber's lane. A
-- delivery cancelled in the retry lane stays there: the lane's sender may have read it or be
-- sending it, and would do so alongside the other lane's. A PULL delivery returns to the mailbox,
-- even a VOLATILE delivery, because a person requested it, with the whole time to live. The ended
-- settlement stays for the archive.
-- Without partition pruning: see `delivery.database`.
WITH place AS MATERIALIZED (
    SELECT
        chosen.id,
        subscription.subscriber_id,
        now() + make_interval(secs => least(
            event_type.ttl_seconds,
            CASE WHEN subscription.mode = 'PULL' THEN %(mailbox_days)s::int * 86400 END
        )) AS expires_at,
        CASE
            WHEN subscription.mode = 'PULL' THEN NULL
            WHEN chosen.queue_group IS NOT NULL THEN chosen.lane_id
            WHEN chosen.callback_id IS NOT NULL THEN callback.id
            WHEN chosen.lane_id = retry.id AND chosen.status = 'CANCELLED' THEN retry.id
            ELSE own.id
        END AS lane_id,
        CASE WHEN chosen.lane_id = retry.id AND chosen.status = 'CANCELLED' THEN now() END AS due_at
    FROM delivery_settled chosen
    JOIN subscriptions_subscription subscription ON subscription.id = chosen.subscription_id
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    JOIN delivery_lane own ON own.subscriber_id = subscription.subscriber_id
    JOIN delivery_lane callback ON callback.kind = 'CALLBACK' AND callback.number = 0
    JOIN delivery_lane retry ON retry.kind = 'RETRY' AND retry.number = 0
    WHERE chosen.id = ANY (%(delivery)s::bigint[]) AND (
        chosen.lane_id IS NOT NULL OR subscription.mode = 'PULL' OR subscription.join_mode = 'ALL'
    )
), gone AS (
    DELETE FROM delivery_settled delivery
    USING place
    WHERE delivery.id = place.id
        AND delivery.status = ANY (%(from)s::text[])
        AND NOT EXISTS (
            SELECT FROM delivery_settled sibling
            WHERE sibling.id BETWEEN delivery.message_id << 20
                    AND delivery.message_id << 20 | 1048575
                AND sibling.queue_group = delivery.queue_group AND sibling.status = 'DELIVERED'
        )
    RETURNING
        delivery.*, place.subscriber_id, place.lane_id AS to_lane, place.due_at,
        place.expires_at AS to_expire_at
), remembered AS (
    INSERT INTO delivery_earliersettlement (
        delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery,
        reason, receive_count, message_id, subscription_id, queue_group, callback_id, replay_id,
        is_amended, ended_by, ended_at, ended_reason
    )
    SELECT
        id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason,
        receive_count, message_id, subscription_id, queue_group, callback_id, replay_id, false,
        pg_current_xact_id()::text, clock_timestamp(), %(reason)s
    FROM gone
), logged AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
    )
    SELECT id, attempts, started_at, duration_ms, 'SUCCESS', status_code, '', ''
    FROM gone
    WHERE started_at IS NOT NULL
), reopened AS (
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, lane_id, queue_group, callback_id, replay_id, status,
        attempts, attempts_before, settled_before, skipped, redelivery, reason, next_attempt_at,
        expires_at, receive_count
    )
    SELECT
        id, message_id, subscription_id, to_lane, queue_group, callback_id, replay_id, 'PENDING',
        attempts, attempts, settled_before + 1, false, 'resubmitted', %(reason)s, due_at,
        to_expire_at, receive_count
    FROM gone
)
SELECT id, to_lane, subscriber_id FROM gone
