-- The lanes that catch up on held deliveries, with their rates. Uses lane_catching_up, which is
-- empty most of the time.
SELECT id, catch_up_rate FROM delivery_lane WHERE catch_up_to IS NOT NULL
