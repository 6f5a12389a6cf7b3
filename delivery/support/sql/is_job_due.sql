-- Whether a bulk job has the next batch due.
SELECT (
    SELECT true
    FROM delivery_resubmission
    WHERE state = 'RUNNING' AND next_at <= %(now)s::timestamptz
    ORDER BY id
    LIMIT 1
) IS NOT NULL
