-- Writes the progress of a pipeline run and returns whether a person stopped it; no row if it is
-- not RUNNING any more.
UPDATE delivery_pipelinerun
SET doing = left(%(doing)s, 200),
    done = %(done)s,
    count = %(count)s,
    log = right(log || %(log)s, 100000)
WHERE id = %(id)s AND state = 'RUNNING'
RETURNING is_stopping
