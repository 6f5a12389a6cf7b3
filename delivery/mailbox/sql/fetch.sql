-- Hands out what is available in a subscriber's mailbox, the oldest first, and never to two at once: each is leased from now on.
-- Available is, of the subscriptions of which nothing is held, what waits (index delivery_in_mailbox), what was released with a delay that is
-- over (delivery_delayed), and what is out longer than its visibility (delivery_leased), whose attempt ends here. What is past
-- its time, of another server's run, or used up is left to the expiry duty.
-- Who comes at the same moment skips what we lock, so we lock nothing but what we take: `oldest` looks, without locks, how
-- many of the oldest wait in each subscription, and `locked` locks so many, the next ones where another was quicker.
-- That may be nothing although something was seen: then it is worth another look, with a longer `reach`.
-- The range of one subscription is for the planner: to walk in the order of (subscription, id) it has that one index, whatever
-- the statistics say, and not one that begins with all that was ever delivered. What is ordered by its time has one index
-- anyway, in which equality ends the walk where what is to come begins. What came back is locked row by row, by its id: joined, the
-- planner may look for it among all that is due in the whole installation.
WITH mailbox AS MATERIALIZED (
    SELECT id, max_receives
    FROM subscriptions_subscription
    WHERE subscriber_id = %(subscriber)s::bigint AND mode = 'PULL' AND status = 'ACTIVE' AND cancellation_id IS NULL
        AND NOT EXISTS (
            SELECT FROM subscriptions_subscriber WHERE id = %(subscriber)s::bigint AND status <> 'ACTIVE'
        ) AND NOT EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD')
), returned AS MATERIALIZED (
    SELECT delivery.id, mailbox.max_receives
    FROM mailbox
    CROSS JOIN LATERAL (
        (
            SELECT id
            FROM delivery_waiting
            WHERE subscription_id = mailbox.id AND next_attempt_at <= now()
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
                AND (expires_at IS NULL OR expires_at > now())
                AND (server_started_at IS NULL OR server_started_at = pg_postmaster_start_time())
            ORDER BY next_attempt_at
            LIMIT %(look)s::int
        )
        UNION ALL
        (
            SELECT id
            FROM delivery_waiting
            WHERE subscription_id = mailbox.id AND lease_expires_at <= now()
                AND status = 'IN_FLIGHT'
                AND (expires_at IS NULL OR expires_at > now())
                AND server_started_at IS NULL
                AND (mailbox.max_receives IS NULL OR receive_count - attempts_before < mailbox.max_receives)
            ORDER BY lease_expires_at, id
            LIMIT %(look)s::int
        )
    ) AS delivery
), oldest AS MATERIALIZED (
    SELECT subscription_id
    FROM (
        SELECT id, NULL AS subscription_id FROM returned
        UNION ALL
        SELECT waiting.id, mailbox.id
        FROM mailbox
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_waiting
            WHERE subscription_id BETWEEN mailbox.id AND mailbox.id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                AND (expires_at IS NULL OR expires_at > now())
                AND (server_started_at IS NULL OR server_started_at = pg_postmaster_start_time())
            ORDER BY subscription_id, id
            LIMIT %(reach)s::int
        ) AS waiting
    ) AS available
    ORDER BY id
    LIMIT %(reach)s::int
), locked AS MATERIALIZED (
    SELECT again.*
    FROM (
        SELECT delivery.*
        FROM (SELECT * FROM returned ORDER BY id) AS seen
        CROSS JOIN LATERAL (
            SELECT id, message_id, status, receive_count, leased_at
            FROM delivery_waiting
            WHERE id = seen.id
                AND (status = 'PENDING' AND next_attempt_at <= now() OR status = 'IN_FLIGHT' AND lease_expires_at <= now())
                AND (seen.max_receives IS NULL OR receive_count - attempts_before < seen.max_receives)
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS delivery
        LIMIT (SELECT count(*) FROM oldest WHERE subscription_id IS NULL)
    ) AS again
    UNION ALL
    SELECT waiting.*
    FROM (
        SELECT subscription_id, count(*) AS share FROM oldest WHERE subscription_id IS NOT NULL GROUP BY subscription_id
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT id, message_id, status, receive_count, leased_at
        FROM delivery_waiting
        WHERE subscription_id BETWEEN wanted.subscription_id AND wanted.subscription_id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            AND (expires_at IS NULL OR expires_at > now())
            AND (server_started_at IS NULL OR server_started_at = pg_postmaster_start_time())
        ORDER BY subscription_id, id
        LIMIT wanted.share
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS waiting
), fitting AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT
            locked.*, message.event_type_id, message.published_at, message.headers, message.content_type, message.body,
            sum(octet_length(message.body)) OVER (ORDER BY locked.id) - octet_length(message.body) AS bytes_before
        FROM (SELECT * FROM locked ORDER BY id LIMIT %(most)s::int) AS locked
        CROSS JOIN LATERAL delivery_read_message(locked.message_id) AS message
    ) AS measured
    WHERE bytes_before + octet_length(body) <= %(bytes)s::bigint OR bytes_before = 0
), leased AS (
    UPDATE delivery_waiting delivery
    SET status = 'IN_FLIGHT',
        lease_token = gen_random_uuid(),
        leased_at = now(),
        lease_expires_at = now() + make_interval(secs => %(visibility)s::int),
        next_attempt_at = NULL,
        attempts = fitting.receive_count,
        receive_count = fitting.receive_count + 1
    FROM fitting
    WHERE delivery.id = fitting.id
    RETURNING
        delivery.id, delivery.message_id, fitting.event_type_id, fitting.published_at, fitting.headers, fitting.content_type,
        fitting.body, delivery.receive_count, delivery.lease_token, delivery.replay_id
), lapsed AS (
    INSERT INTO delivery_loggedattempt (delivery_id, number, started_at, duration_ms, outcome, error, excerpt)
    SELECT
        id, receive_count, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, 'UNACKNOWLEDGED',
        'not acknowledged within its visibility, and fetched again', ''
    FROM fitting
    WHERE status = 'IN_FLIGHT'
    ON CONFLICT DO NOTHING
), counted AS (
    INSERT INTO delivery_mailboxrate AS rate (subscriber_id, at, slot, received, acknowledged)
    SELECT
        %(subscriber)s::bigint, date_bin('10 seconds', now(), 'epoch'), pg_backend_pid() %% 16, count(*), 0
    FROM leased
    HAVING count(*) > 0
    ON CONFLICT (subscriber_id, at, slot) DO UPDATE SET received = rate.received + excluded.received
)
SELECT
    looked.seen, leased.id, leased.message_id, event_type.name, leased.published_at, leased.headers::text,
    leased.content_type, leased.body, leased.receive_count, leased.lease_token, leased.replay_id
FROM (SELECT count(*) AS seen FROM oldest) AS looked
LEFT JOIN (leased JOIN subscriptions_eventtype event_type ON event_type.id = leased.event_type_id) ON true
ORDER BY leased.id
