-- The archive's contents per table: current files, rows, bytes and days. Reads the ledger, a row
-- for each file.
SELECT
    file."table", count(*) AS files, sum(file.rows)::bigint AS rows,
    sum(file.bytes)::bigint AS bytes, count(DISTINCT file.day) AS days, min(file.day) AS first_day,
    max(file.day) AS last_day
FROM delivery_archivefile file
JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
GROUP BY file."table"
