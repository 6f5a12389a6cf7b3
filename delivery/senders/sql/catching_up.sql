-- The lanes that catch up on what was held, and at which rate. Leans on lane_catching_up, which is empty most of the time.
SELECT id, catch_up_rate FROM delivery_lane WHERE catch_up_to IS NOT NULL
