-- How many lanes there are, and for how many locks the server's lock table has room. A lane that has work, or is stopped, is a lock, and each
-- transaction that writes needs some, publishers' too.
SELECT
    (SELECT count(*) FROM delivery_lane) AS lanes,
    current_setting('max_locks_per_transaction')::int AS per_connection,
    current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int AS connections
