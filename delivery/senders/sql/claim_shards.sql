-- Notes that this sender has these shards, and returns their epochs: raised, where another had the shard last.
-- To be executed after `lock_shards.sql` and not within it, so that it sees what the last owner has committed.
UPDATE delivery_shard
SET epoch = epoch + CASE WHEN owner = %(owner)s THEN 0 ELSE 1 END, owner = %(owner)s
WHERE id = ANY (%(shard)s::int[])
RETURNING id, epoch
