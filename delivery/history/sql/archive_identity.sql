-- The UUID of the archive, null before the first export, and whether the ledger has files.
SELECT
    (SELECT uuid FROM delivery_archiveidentity WHERE id = 1) AS uuid,
    EXISTS (SELECT FROM delivery_archivefile) AS has_files
