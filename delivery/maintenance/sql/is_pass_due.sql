-- Whether the newest pass of retention is running, or began so long ago that the next is due.
SELECT coalesce(
    (
        SELECT state = 'RUNNING' OR started_at <= %(until)s::timestamptz
        FROM delivery_retentionrun
        ORDER BY id DESC
        LIMIT 1
    ),
    true
)
