-- Deletes a chunk whose interval is empty, and moves the watermark past it: both or neither.
WITH skipped AS (
    DELETE FROM delivery_archivechunk WHERE id = %(chunk)s RETURNING until
)
INSERT INTO delivery_archived AS mark (id, until)
SELECT 1, until FROM skipped
ON CONFLICT (id) DO UPDATE SET until = excluded.until WHERE excluded.until > mark.until
