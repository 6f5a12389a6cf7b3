-- Removes all files of the archive from its ledger.
DELETE FROM delivery_archivefile
