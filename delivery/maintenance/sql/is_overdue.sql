-- Whether `lock_overdue.sql` or `lock_overdue_groups.sql` may find something: planning those takes
-- ten times as long as this, usually to find nothing. Leans on the same indexes.
SELECT coalesce(
    (SELECT true FROM delivery_waiting WHERE status = 'IN_FLIGHT' ORDER BY subscription_id LIMIT 1),
    (SELECT true FROM delivery_waiting WHERE expires_at <= now() ORDER BY expires_at LIMIT 1),
    (
        SELECT true
        FROM delivery_waiting
        WHERE server_started_at < pg_postmaster_start_time()
        ORDER BY server_started_at
        LIMIT 1
    ),
    (
        SELECT true
        FROM delivery_waiting
        WHERE server_started_at > pg_postmaster_start_time()
        ORDER BY server_started_at
        LIMIT 1
    ),
    false
)
