-- The chunks of the archive that are to be rolled up: those that were not yet, or all.
SELECT id, since, until
FROM delivery_archivechunk
WHERE kind = 'EXPORT' AND state = 'DONE' AND (%(everything)s OR NOT is_rolled_up)
ORDER BY since
