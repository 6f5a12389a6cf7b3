-- Ends fetches by their receipts: acknowledged, released or declined. Returns the state of each
-- requested delivery as locked, before the change, and how the last fetch ended, if it has ended. A
-- later fetch has changed the token, so a receipt is valid as long as the token is the row's: also
-- after the visibility and after the delivery's `expires_at`. All rows are locked in the order of
-- their ids, so requests with common rows never deadlock, and every decision uses the locked state.
-- Each ended fetch is an attempt. A released delivery without further fetches (max_receives,
-- VOLATILE) becomes FAILED. Leans on the primary key. The array of ids in each condition is for the
-- planner: see `fetch.sql`.
WITH held AS MATERIALIZED (
    SELECT
        delivery.id, delivery.message_id, delivery.status, delivery.receive_count,
        delivery.lease_token, delivery.leased_at,
        delivery.receive_count - delivery.attempts_before AS receives,
        delivery.lease_token IN (
            SELECT receipt.token
            FROM unnest(%(delivery)s::bigint[], %(token)s::uuid[]) AS receipt (id, token)
            WHERE receipt.id = delivery.id
        ) AS is_ended,
        CASE
            WHEN %(outcome)s::text = 'ACKNOWLEDGED' THEN 'DELIVERED'
            WHEN %(outcome)s::text = 'DECLINED' THEN 'REJECTED'
            WHEN delivery.server_started_at IS NOT NULL THEN 'FAILED'
            WHEN delivery.receive_count - delivery.attempts_before >= subscription.max_receives
                THEN 'FAILED'
            ELSE 'PENDING'
        END AS becomes,
        CASE
            WHEN %(outcome)s::text = 'ACKNOWLEDGED' THEN ''
            WHEN %(outcome)s::text = 'DECLINED' THEN 'rejected by the subscriber'
            WHEN delivery.server_started_at IS NOT NULL
                THEN 'released by the subscriber; a VOLATILE message is handed out once'
            WHEN delivery.receive_count - delivery.attempts_before >= subscription.max_receives
                THEN 'released by the subscriber, after as many receives as max_receives allows'
            ELSE 'released by the subscriber'
        END AS reason
    FROM delivery_delivery delivery
    JOIN subscriptions_subscription subscription ON subscription.id = delivery.subscription_id
    WHERE delivery.id = ANY (%(delivery)s::bigint[])
        AND subscription.subscriber_id = %(subscriber)s::bigint AND subscription.mode = 'PULL'
    ORDER BY delivery.id
    FOR UPDATE OF delivery
), gone AS (
    DELETE FROM delivery_waiting delivery
    USING held
    WHERE delivery.id = ANY (%(delivery)s::bigint[])
        AND delivery.id = held.id AND held.is_ended AND held.becomes <> 'PENDING'
    RETURNING delivery AS waiting, delivery.redelivery, held.*
), settled AS (
    INSERT INTO delivery_settled
    SELECT settled.*
    FROM gone
    CROSS JOIN (SELECT delivery_clock() AS now) AS clock
    CROSS JOIN LATERAL delivery_settled_as(
        gone.waiting, gone.becomes, gone.receive_count, gone.reason, clock.now, gone.redelivery
    ) AS settled
), released AS (
    UPDATE delivery_waiting delivery
    SET status = 'PENDING',
        attempts = held.receive_count,
        reason = held.reason,
        next_attempt_at = CASE
            WHEN %(delay)s::int > 0 THEN now() + make_interval(secs => %(delay)s::int)
        END,
        leased_at = NULL,
        lease_token = NULL,
        lease_expires_at = NULL
    FROM held
    WHERE delivery.id = ANY (%(delivery)s::bigint[])
        AND delivery.id = held.id AND held.is_ended AND held.becomes = 'PENDING'
), ended AS (
    SELECT * FROM held WHERE is_ended
), attempts AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, error, excerpt
    )
    SELECT
        id, receive_count, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, %(outcome)s::text,
        reason, ''
    FROM ended
    ON CONFLICT DO NOTHING
), notices AS (
    INSERT INTO delivery_failurenotice (delivery_id, number)
    SELECT ended.id, ended.receive_count
    FROM ended
    CROSS JOIN LATERAL delivery_read_message(ended.message_id) AS message
    JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
    WHERE ended.becomes IN ('REJECTED', 'FAILED') AND event_type.name <> 'Inturn.Delivery.Failed'
    ON CONFLICT DO NOTHING
), journalled AS (
    INSERT INTO delivery_journalentry (kind, text, actor, delivery_id)
    SELECT 'FAILED', 'FAILED after ' || receives || ' receives: ' || reason || '.', '', id
    FROM ended
    WHERE becomes = 'FAILED'
), counted AS (
    INSERT INTO delivery_mailboxrate AS rate (subscriber_id, at, slot, received, acknowledged)
    SELECT
        %(subscriber)s::bigint, date_bin('10 seconds', now(), 'epoch'), pg_backend_pid() %% 16, 0,
        count(*)
    FROM ended
    WHERE becomes = 'DELIVERED'
    HAVING count(*) > 0
    ON CONFLICT (subscriber_id, at, slot)
    DO UPDATE SET acknowledged = rate.acknowledged + excluded.acknowledged
)
SELECT
    held.id, held.status, held.receive_count, held.lease_token, (
        SELECT delivery_outcome_of(held.id, held.receive_count)
        WHERE NOT coalesce(held.is_ended, false)
    )
FROM held
