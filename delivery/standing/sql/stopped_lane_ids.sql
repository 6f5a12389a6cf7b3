-- The lanes that are stopped now, or describe an endpoint that is DOWN. Uses lane_stopped.
SELECT lane_id FROM delivery_stoppedlane ORDER BY lane_id
