-- For each lane, the one delivery that a dead sender may have sent without recording the outcome.
-- Outcomes are committed one by one in the order of the run, so it is the first that
-- is still as it was when the run was recorded. Skipped ones keep their mark.
SELECT DISTINCT ON (lane.id)
    lane.id AS lane_id, delivery.id, delivery.subscription_id, delivery.attempts, delivery.skipped
FROM delivery_lane lane
CROSS JOIN LATERAL unnest(lane.run_ids, lane.run_attempts) WITH ORDINALITY AS run (id, attempts, place)
JOIN delivery_delivery delivery ON delivery.id = run.id
WHERE lane.id = ANY (%(lane)s::bigint[]) AND delivery.status = 'PENDING' AND delivery.attempts = run.attempts
ORDER BY lane.id, run.place
