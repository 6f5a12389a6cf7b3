-- Marks a chunk whose files are in place as DONE, and moves the watermark to the chunk's end: both
-- or neither.
WITH finished AS (
    UPDATE delivery_archivechunk
    SET state = 'DONE', ended_at = clock_timestamp()
    WHERE id = %(chunk)s AND state = 'MOVING'
    RETURNING kind, until
)
INSERT INTO delivery_archived AS mark (id, until)
SELECT 1, until FROM finished WHERE kind = 'EXPORT'
ON CONFLICT (id) DO UPDATE SET until = excluded.until WHERE excluded.until > mark.until
