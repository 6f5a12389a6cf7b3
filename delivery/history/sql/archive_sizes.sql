-- The valid files of the archive, with their sizes.
SELECT file.path, file.bytes
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
ORDER BY file.id
