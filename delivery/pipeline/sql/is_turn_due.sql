-- Whether a run is open, or a schedule is due.
SELECT (
    SELECT true
    FROM delivery_pipelinerun
    WHERE state IN ('WAITING', 'RUNNING')
    ORDER BY id
    LIMIT 1
) IS NOT NULL OR EXISTS (
    SELECT FROM delivery_pipelineschedule
    WHERE is_on AND next_at <= %(now)s::timestamptz
)
