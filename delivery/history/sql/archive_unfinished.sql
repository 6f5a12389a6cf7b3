-- The unfinished chunks left by a killed run.
SELECT id, kind, state, until FROM delivery_archivechunk WHERE state <> 'DONE' ORDER BY id
