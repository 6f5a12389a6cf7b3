-- Files replaced by a finished compaction, which may still exist.
SELECT file.id, file.path
FROM delivery_archivefile file
JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE replacing.state = 'DONE'
ORDER BY file.id
