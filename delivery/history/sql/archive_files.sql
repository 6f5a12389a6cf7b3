-- The valid files of a table of the archive, for some days: those of finished chunks, not replaced
-- by a finished chunk. Leans on archive_file_by_day.
SELECT file.id, file.day, file.path, file.rows, file.bytes, file.first_id, file.last_id,
    file.sha256, file.checksum
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE file."table" = %(table)s
    AND file.day >= coalesce(%(since)s::date, '-infinity')
    AND file.day <= coalesce(%(until)s::date, 'infinity')
    AND chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
ORDER BY file.day, file.id
