-- The unfinished chunks that a killed run left.
SELECT id, kind, state, until FROM delivery_archivechunk WHERE state <> 'DONE' ORDER BY id
