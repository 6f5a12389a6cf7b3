-- The chunks of the archive that are to be rolled up: those that were not yet, or all; each from where the one before ended, for there
-- is no chunk of a time in which nothing happened, but in which something may have stood still.
SELECT id, since, until
FROM (
    SELECT id, coalesce(lag(until) OVER (ORDER BY since), since) AS since, until, is_rolled_up
    FROM delivery_archivechunk
    WHERE kind = 'EXPORT' AND state = 'DONE'
) AS chunk
WHERE %(everything)s OR NOT is_rolled_up
ORDER BY since
