-- Whether `take_failures.sql` would find a due notice. Like this statement it reads the notices of
-- SYNC messages under way, which are few.
SELECT (
    SELECT true
    FROM delivery_failurenotice
    WHERE due_at <= statement_timestamp()
    ORDER BY id
    LIMIT 1
) IS NOT NULL
