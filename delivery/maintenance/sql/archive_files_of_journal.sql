-- The archive's files with the journal's oldest entries, up to a time, with their sizes.
SELECT file.path, file.bytes
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE' AND file."table" = 'journal'
    AND file.last_id >= (SELECT min(id) FROM delivery_journalentry)
    AND file.day <= (%(until)s AT TIME ZONE 'UTC')::date
ORDER BY file.id
