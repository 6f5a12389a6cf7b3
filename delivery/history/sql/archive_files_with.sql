-- The valid files of a table of the archive, from a day on, which may hold ids of a range; for
-- attempts these are delivery ids.
SELECT file.path
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE file."table" = %(table)s
    AND file.first_id <= %(last)s AND file.last_id >= %(first)s
    AND file.day >= coalesce(%(since)s::date, '-infinity')
    AND chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
ORDER BY file.day, file.id
