-- What a killed run has left of chunks.
SELECT id, kind, state, until FROM delivery_archivechunk WHERE state <> 'DONE' ORDER BY id
