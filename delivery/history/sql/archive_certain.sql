-- Whether nothing will be written any more with a time before `until`, once a chunk that ends there has begun: the clock is past it, and
-- no transaction writes that began before. From the chunk's beginning `delivery_clock` gives no earlier time, so a clock that goes back
-- later changes nothing.
SELECT
    clock_timestamp() >= %(until)s AND NOT EXISTS (
        SELECT
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < %(until)s
    )
