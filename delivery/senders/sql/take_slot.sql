-- Takes the lock of the first of these slots that no sender has, and returns the slot; no row if
-- all are taken.
SELECT slot
FROM unnest(%(slot)s::int[]) AS candidate (slot)
WHERE pg_try_advisory_lock((%(lock_class)s::bigint << 32) | slot)
LIMIT 1
