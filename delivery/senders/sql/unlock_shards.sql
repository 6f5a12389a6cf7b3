-- Releases shards and notifies the other senders, which may take them from now on.
WITH unlocked AS MATERIALIZED (
    SELECT count(pg_advisory_unlock((%(lock_class)s::bigint << 32) | shard)) AS shards
    FROM unnest(%(shard)s::int[]) AS held (shard)
)
SELECT pg_notify(%(channel)s, 'released') FROM unlocked WHERE shards > 0
