-- The paths of all files in the ledger, counted or not, and the chunks.
SELECT
    ARRAY(SELECT path FROM delivery_archivefile) AS paths,
    ARRAY(SELECT id FROM delivery_archivechunk) AS chunks
