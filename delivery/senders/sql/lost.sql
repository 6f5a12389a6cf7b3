-- For each lane, what a dead sender may have sent without recording the outcome: of its run, what is still as it
-- was when the run was recorded. Unless it was concurrent, outcomes were committed one by one in the order of
-- the run, so then it is the first only. Skipped ones keep their mark.
SELECT id, lane_id, subscription_id, attempts, skipped, is_volatile
FROM (
    SELECT
        delivery.id, lane.id AS lane_id, delivery.subscription_id, delivery.attempts, delivery.skipped,
        delivery.server_started_at IS NOT NULL AS is_volatile, lane.run_is_concurrent,
        row_number() OVER (PARTITION BY lane.id ORDER BY run.place) AS place
    FROM delivery_lane lane
    CROSS JOIN LATERAL unnest(lane.run_ids, lane.run_attempts) WITH ORDINALITY AS run (id, attempts, place)
    JOIN delivery_waiting delivery ON delivery.id = run.id
    WHERE lane.id = ANY (%(lane)s::bigint[])
        AND delivery.status = 'PENDING' AND delivery.attempts = run.attempts
) AS found
WHERE run_is_concurrent OR place = 1
