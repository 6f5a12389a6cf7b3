-- Begins a chunk of the archive, and returns the id.
INSERT INTO delivery_archivechunk (kind, state, run_id, since, until, snapshot, counts)
VALUES (%(kind)s, 'WRITING', %(run)s, %(since)s, %(until)s, '', '{}')
RETURNING id
