-- Gives lanes back: another sender may take them from this moment on.
SELECT pg_advisory_unlock((%(lock_class)s::bigint << 32) | lane_id)
FROM unnest(%(lane)s::bigint[]) AS wanted (lane_id)
