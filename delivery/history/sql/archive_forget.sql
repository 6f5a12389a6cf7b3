-- Forgets the archive, whose files the ledger has no more: chunks, end, UUID. The end of the
-- measured time is kept, for the next archive.
WITH chunks AS (
    DELETE FROM delivery_archivechunk RETURNING until, is_rolled_up
), ended AS (
    DELETE FROM delivery_archived
), measured AS (
    SELECT max(until) AS until FROM chunks WHERE is_rolled_up
)
UPDATE delivery_archiveidentity
SET
    uuid = NULL,
    measured_until = greatest(measured_until, (SELECT until FROM measured))
WHERE id = 1
