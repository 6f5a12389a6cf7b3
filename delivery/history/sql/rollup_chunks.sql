-- The archive's chunks to roll up: those not rolled up yet, or all. Each begins where the previous
-- chunk ended, because an interval without rows has no chunk, although a lane may have been stopped
-- in it. Hours of an earlier archive, given up since, are left alone.
SELECT
    id,
    greatest(since, (SELECT measured_until FROM delivery_archiveidentity WHERE id = 1)) AS since,
    until
FROM (
    SELECT id, coalesce(lag(until) OVER (ORDER BY since), since) AS since, until, is_rolled_up
    FROM delivery_archivechunk
    WHERE kind = 'EXPORT' AND state = 'DONE'
) AS chunk
WHERE %(everything)s OR NOT is_rolled_up
ORDER BY since
