-- The rows by table archived by exports since the watermark was at a time. A chunk ends where the
-- watermark moves to, so no chunk has this time inside it. Compactions keep the number of rows.
SELECT counted.key AS "table", sum(counted.value::bigint) AS rows
FROM delivery_archivechunk chunk, jsonb_each_text(chunk.counts) AS counted
WHERE chunk.kind = 'EXPORT' AND chunk.state = 'DONE' AND chunk.until > %(time)s
GROUP BY counted.key
