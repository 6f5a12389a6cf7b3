-- Records that this sender has these shards, and returns their epochs.
-- An epoch is raised if another sender had the shard last. Execute it after `lock_shards.sql` and
-- not within it, so that it sees the commits of the last owner.
UPDATE delivery_shard
SET epoch = epoch + CASE WHEN owner = %(owner)s THEN 0 ELSE 1 END, owner = %(owner)s
WHERE id = ANY (%(shard)s::int[])
RETURNING id, epoch
