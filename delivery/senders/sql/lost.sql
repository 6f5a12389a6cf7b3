-- For each lane, the deliveries that a dead sender may have sent without recording the outcome.
-- They are the deliveries of its run that are still as they were when the run was recorded.
-- Outcomes of an ordered run were committed one by one in its order, so only the first counts
-- there. Skipped deliveries keep their mark.
SELECT id, lane_id, subscription_id, attempts, skipped, is_volatile
FROM (
    SELECT
        delivery.id, lane.id AS lane_id, delivery.subscription_id, delivery.attempts,
        delivery.skipped, delivery.server_started_at IS NOT NULL AS is_volatile,
        lane.run_is_concurrent,
        row_number() OVER (PARTITION BY lane.id ORDER BY run.place) AS place
    FROM delivery_lane lane
    CROSS JOIN LATERAL unnest(
        lane.run_ids, lane.run_attempts
    ) WITH ORDINALITY AS run (id, attempts, place)
    CROSS JOIN LATERAL (SELECT * FROM delivery_waiting WHERE id = run.id LIMIT 1) AS delivery
    WHERE lane.id = ANY (%(lane)s::bigint[])
        AND delivery.status = 'PENDING' AND delivery.attempts = run.attempts
) AS found
WHERE run_is_concurrent OR place = 1
