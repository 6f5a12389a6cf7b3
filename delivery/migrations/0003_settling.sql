-- The statements that settle deliveries share these functions. A delivery is rarely settled
-- already, so a function changes those that are: otherwise the plan of each settlement would
-- contain all partitions.
CREATE FUNCTION delivery_settled_as(
    waiting delivery_waiting, status text, attempts int, reason text, settled_at timestamptz, redelivery text,
    started_at timestamptz DEFAULT NULL, duration_ms int DEFAULT NULL, status_code smallint DEFAULT NULL
) RETURNS SETOF delivery_delivery LANGUAGE sql STABLE AS $$
    SELECT
        waiting.id, waiting.message_id, waiting.subscription_id, waiting.lane_id, waiting.queue_group,
        waiting.callback_id, waiting.replay_id, status::varchar(15), attempts, waiting.attempts_before, waiting.settled_before,
        false, redelivery::varchar(12), reason, NULL::timestamptz, waiting.expires_at, waiting.server_started_at, settled_at,
        NULL::timestamptz, NULL::uuid, NULL::timestamptz, waiting.receive_count, started_at, duration_ms, status_code,
        NULL::smallint
$$;

-- Adds an attempt to a delivery that a person settled while the attempt was under way. The delivery
-- keeps its status, and gets a new settlement time, so that the archive gets the attempt.
CREATE FUNCTION delivery_amend(
    delivery_id bigint, number int, outcome text, reason text, started_at timestamptz, duration_ms int,
    status_code smallint, error text, excerpt bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE delivery_settled settled
    SET attempts = delivery_amend.number,
        reason = delivery_amend.reason,
        redelivery = CASE WHEN delivery_amend.outcome = 'LOST' THEN 'in-doubt' ELSE settled.redelivery END,
        settled_at = delivery_clock()
    WHERE settled.id = delivery_amend.delivery_id AND settled.attempts = delivery_amend.number - 1;
    IF FOUND THEN
        INSERT INTO delivery_loggedattempt VALUES (
            delivery_amend.delivery_id, delivery_amend.number, delivery_amend.started_at, delivery_amend.duration_ms,
            delivery_amend.outcome, delivery_amend.status_code, delivery_amend.error, delivery_amend.excerpt
        );
    END IF;
    RETURN FOUND;
END
$$;

-- Functions for statements that lock rows and must not read partitioned tables: see
-- `delivery/database/queries.py`.
CREATE FUNCTION delivery_read_message(message_id bigint) RETURNS SETOF delivery_message LANGUAGE plpgsql STABLE ROWS 1
AS $$
BEGIN
    RETURN QUERY SELECT * FROM delivery_message WHERE id = message_id;
END
$$;
CREATE FUNCTION delivery_outcome_of(id bigint, attempt int) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT outcome FROM delivery_attempt WHERE delivery_id = id AND number = attempt);
END
$$;

CREATE FUNCTION delivery_subscription_of(delivery_id bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT subscription_id FROM delivery_delivery WHERE id = delivery_id);
END
$$;

-- The trigger stores the settlement of a delivery before a change. It covers every statement that
-- changes a settled delivery, including future ones, so the next export knows which settlements
-- and attempts are archived already.
CREATE FUNCTION delivery_remember_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    amended boolean := NEW.settled_at IS NOT NULL AND NEW.settled_before = OLD.settled_before;
BEGIN
    INSERT INTO delivery_earliersettlement (
        delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
        message_id, subscription_id, queue_group, callback_id, replay_id, is_amended, ended_by, ended_at, ended_reason
    )
    VALUES (
        OLD.id, OLD.settled_at, OLD.status, OLD.attempts, OLD.attempts_before, OLD.settled_before, OLD.redelivery,
        OLD.reason, OLD.receive_count, OLD.message_id, OLD.subscription_id, OLD.queue_group, OLD.callback_id, OLD.replay_id,
        amended, pg_current_xact_id()::text, clock_timestamp(), CASE WHEN amended THEN '' ELSE NEW.reason END
    );
    RETURN NULL;
END
$$;

CREATE TRIGGER delivery_remember_settlement AFTER UPDATE ON delivery_settled
FOR EACH ROW WHEN (NEW.settled_at IS DISTINCT FROM OLD.settled_at)
EXECUTE FUNCTION delivery_remember_settlement();

-- In every snapshot the view has each settlement once: the trigger writes in the transaction that
-- changes the delivery.
CREATE VIEW delivery_settlement AS
SELECT
    id AS delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
    message_id, subscription_id, queue_group, callback_id, replay_id, true AS stands
FROM delivery_settled
UNION ALL
SELECT
    delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
    message_id, subscription_id, queue_group, callback_id, replay_id, false
FROM delivery_earliersettlement
WHERE NOT is_amended;

-- Deliveries have no foreign keys: inserting statements lock the subscription themselves, and this
-- trigger protects it.
CREATE FUNCTION delivery_protect_subscription() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A statement that inserts a delivery locks the subscription, so its delivery is committed by
    -- now, and visible here.
    IF EXISTS (SELECT FROM delivery_delivery WHERE subscription_id = OLD.id) THEN
        RAISE foreign_key_violation USING MESSAGE = format('subscription %s has deliveries', OLD.id);
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER delivery_protect_subscription AFTER DELETE ON subscriptions_subscription
FOR EACH ROW EXECUTE FUNCTION delivery_protect_subscription();
