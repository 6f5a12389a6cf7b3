-- The rows by table that exports archived since the watermark was at a time.
-- A chunk ends where the watermark moves to, so none has that time inside it. Compactions keep the
-- number of rows.
SELECT counted.key AS "table", sum(counted.value::bigint) AS rows
FROM delivery_archivechunk chunk, jsonb_each_text(chunk.counts) AS counted
WHERE chunk.kind = 'EXPORT' AND chunk.state = 'DONE' AND chunk.until > %(time)s
GROUP BY counted.key
