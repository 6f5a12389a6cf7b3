-- Removes all files of the archive from the ledger.
DELETE FROM delivery_archivefile
