-- Leases the available deliveries of a subscriber's mailbox, the oldest first; no delivery goes to
-- two clients. Available deliveries belong to subscriptions not held, and are: waiting (index
-- delivery_in_mailbox), released with an ended delay (delivery_delayed), or leased with an ended
-- visibility (delivery_leased); the attempt of the latter ends here. Expired, used up, and VOLATILE
-- deliveries from an earlier server start are left to the expiry duty. Concurrent fetches skip the
-- rows locked here, so the statement locks only taken rows: `oldest` counts, without locks, how
-- many of the oldest wait in each subscription, and `locked` locks that many, moving on to the next
-- rows where another fetch was first. `locked` may be empty although `oldest` is not; then the
-- caller tries again with a longer `reach`. `BETWEEN` a subscription's id and itself is for the
-- planner: only delivery_in_mailbox gives the order (subscription_id, id), whatever the statistics
-- say, so the planner cannot choose an index whose walk starts with every delivery ever made. The
-- reads ordered by time have a single index anyway; there the equality of subscription_id lets the
-- walk end where future times begin. Returned deliveries are locked singly, by id: with a join, the
-- planner may search for them among all due deliveries of the installation. The update names the
-- rows by an array, too: a plan made while the table was empty would read all of it for the join
-- alone.
WITH mailbox AS MATERIALIZED (
    SELECT id, max_receives
    FROM subscriptions_subscription
    WHERE subscriber_id = %(subscriber)s::bigint AND mode = 'PULL' AND status = 'ACTIVE'
        AND cancellation_id IS NULL
        AND NOT EXISTS (
            SELECT FROM subscriptions_subscriber
            WHERE id = %(subscriber)s::bigint AND status <> 'ACTIVE'
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
                AND {is_fresh(delivery_waiting)}
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
                AND (
                    mailbox.max_receives IS NULL
                    OR receive_count - attempts_before < mailbox.max_receives
                )
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
                AND {is_fresh(delivery_waiting)}
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
                AND (
                    status = 'PENDING' AND next_attempt_at <= now()
                    OR status = 'IN_FLIGHT' AND lease_expires_at <= now()
                )
                AND (
                    seen.max_receives IS NULL OR receive_count - attempts_before < seen.max_receives
                )
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS delivery
        LIMIT (SELECT count(*) FROM oldest WHERE subscription_id IS NULL)
    ) AS again
    UNION ALL
    SELECT waiting.*
    FROM (
        SELECT subscription_id, count(*) AS share
        FROM oldest
        WHERE subscription_id IS NOT NULL
        GROUP BY subscription_id
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT id, message_id, status, receive_count, leased_at
        FROM delivery_waiting
        WHERE subscription_id BETWEEN wanted.subscription_id AND wanted.subscription_id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            AND {is_fresh(delivery_waiting)}
        ORDER BY subscription_id, id
        LIMIT wanted.share
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS waiting
), fitting AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT
            locked.*, message.event_type_id, message.published_at, message.headers,
            message.content_type, message.body,
            sum(octet_length(message.body)) OVER (ORDER BY locked.id)
                - octet_length(message.body) AS bytes_before
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
    WHERE delivery.id = fitting.id AND delivery.id = ANY (ARRAY(SELECT id FROM fitting))
    RETURNING
        delivery.id, delivery.message_id, fitting.event_type_id, fitting.published_at,
        fitting.headers, fitting.content_type, fitting.body, delivery.receive_count,
        delivery.lease_token, delivery.replay_id
), lapsed AS (
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, error, excerpt
    )
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
        %(subscriber)s::bigint, date_bin('10 seconds', now(), 'epoch'), pg_backend_pid() %% 16,
        count(*), 0
    FROM leased
    HAVING count(*) > 0
    ON CONFLICT (subscriber_id, at, slot) DO UPDATE SET received = rate.received + excluded.received
)
SELECT
    looked.seen, leased.id, leased.message_id, event_type.name, leased.published_at,
    leased.headers::text, leased.content_type, leased.body, leased.receive_count,
    leased.lease_token, leased.replay_id
FROM (SELECT count(*) AS seen FROM oldest) AS looked
LEFT JOIN (leased JOIN subscriptions_eventtype event_type ON event_type.id = leased.event_type_id)
    ON true
ORDER BY leased.id
