-- How many lanes are stopped, by state. Leans on lane_stopped.
SELECT state, count(*) AS count FROM delivery_lane WHERE state IN ('BLOCKED', 'SUSPENDED') GROUP BY state
