-- The lanes of these shards that a sender may have left in the middle of a run: a delivery of it is
-- still as it was recorded.
SELECT lane.id AS lane_id
FROM delivery_lane lane
WHERE lane.id %% 512 = ANY (%(shard)s::int[]) AND EXISTS (
    SELECT
    FROM unnest(lane.run_ids, lane.run_attempts) AS run (id, attempts)
    CROSS JOIN LATERAL (
        SELECT status, attempts FROM delivery_waiting WHERE id = run.id LIMIT 1
    ) AS delivery
    WHERE delivery.status = 'PENDING' AND delivery.attempts = run.attempts
)
