-- Those of these stopped lanes that are to try again now: their pause is over, or a person
-- requested it.
-- A row that records another pause than the sender's, whose commit is still to come, does not
-- count.
SELECT lane.id
FROM unnest(
    %(lane)s::bigint[], %(delivery)s::bigint[], %(failures)s::int[]
) AS stopped (lane_id, delivery_id, failures)
JOIN delivery_lane lane
    ON lane.id = stopped.lane_id AND lane.delivery_id = stopped.delivery_id
    AND lane.failures = stopped.failures
WHERE lane.state = 'BLOCKED' AND lane.next_try_at <= now()
