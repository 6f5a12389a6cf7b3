-- Which of these stopped lanes are to try again now: their pause is over, or a person asked for it. A row that tells of
-- another pause than the sender's, which is not committed yet, says nothing of that.
SELECT lane.id
FROM unnest(%(lane)s::bigint[], %(delivery)s::bigint[], %(failures)s::int[]) AS stopped (lane_id, delivery_id, failures)
JOIN delivery_lane lane
    ON lane.id = stopped.lane_id AND lane.delivery_id = stopped.delivery_id AND lane.failures = stopped.failures
WHERE lane.state = 'BLOCKED' AND lane.next_try_at <= now()
