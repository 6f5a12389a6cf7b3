-- The archive's files with rows of messages with ids of a range, of their deliveries or attempts,
-- with their sizes.
SELECT file.path, file.bytes
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE' AND (
    (file."table" = 'messages' AND file.first_id <= %(last)s AND file.last_id >= %(first)s)
    OR (
        file."table" IN ('deliveries', 'attempts')
        AND file.first_id < %(until_delivery)s AND file.last_id >= %(first_delivery)s
    )
)
ORDER BY file.id
