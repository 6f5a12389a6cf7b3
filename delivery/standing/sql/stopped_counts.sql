-- The number of stopped lanes by state. Uses lane_stopped.
SELECT state, count(*) AS count
FROM delivery_lane
WHERE state IN ('BLOCKED', 'SUSPENDED')
GROUP BY state
