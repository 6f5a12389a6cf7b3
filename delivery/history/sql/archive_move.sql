-- Records that a chunk is verified, with the files and the replaced files: they are moved into
-- place next.
WITH files AS (
    INSERT INTO delivery_archivefile (
        chunk_id, "table", day, path, staged, rows, bytes, first_id, last_id, sha256, checksum
    )
    SELECT
        %(chunk)s, "table", day, path, staged, rows, bytes, first_id, last_id, sha256, checksum
    FROM json_to_recordset(%(files)s::json)
        AS file (
            "table" text, day date, path text, staged text, rows bigint, bytes bigint,
            first_id bigint, last_id bigint, sha256 text, checksum text
        )
), replaced AS (
    UPDATE delivery_archivefile
    SET replaced_by_id = %(chunk)s
    WHERE id = ANY (%(replaced)s::bigint[])
)
UPDATE delivery_archivechunk
SET state = 'MOVING', snapshot = %(snapshot)s, counts = %(counts)s::jsonb
WHERE id = %(chunk)s AND state = 'WRITING'
