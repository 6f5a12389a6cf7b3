-- Returns whether no more rows will be written with a time before `until`, once a chunk with this
-- end has begun: the clock is past it, and no writing transaction began before it. From the chunk's
-- beginning `delivery_clock` returns no earlier time, so a clock set back later changes nothing.
SELECT
    clock_timestamp() >= %(until)s AND NOT EXISTS (
        SELECT
        FROM pg_stat_activity
        WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
            AND xact_start < %(until)s
    )
