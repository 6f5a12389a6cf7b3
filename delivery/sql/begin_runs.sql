-- Reads the next runs of idle lanes as `read_runs.sql` does, and records them: see `delivery.senders.runs`.
WITH run AS MATERIALIZED (
{read_runs}
), recorded AS (
    UPDATE delivery_lane lane
    SET run_ids = begun.ids, run_attempts = begun.attempts, run_is_concurrent = false
    FROM (
        SELECT lane_id, array_agg(id ORDER BY id) AS ids, array_agg(attempts ORDER BY id) AS attempts
        FROM run
        GROUP BY lane_id
    ) AS begun
    WHERE lane.id = begun.lane_id
)
SELECT * FROM run ORDER BY place, id
