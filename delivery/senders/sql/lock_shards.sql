-- Takes the advisory locks of those shards that nobody else has, and returns them. A lock belongs
-- to the session: it is held until it is released or the connection ends.
SELECT shard
FROM unnest(%(shard)s::int[]) AS wanted (shard)
WHERE pg_try_advisory_lock((%(lock_class)s::bigint << 32) | shard)
