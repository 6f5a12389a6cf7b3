-- The paths of all files that the ledger names, counted or not, and the chunks that it has.
SELECT
    ARRAY(SELECT path FROM delivery_archivefile) AS paths,
    ARRAY(SELECT id FROM delivery_archivechunk) AS chunks
