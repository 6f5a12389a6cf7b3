-- The archive's contents: the files, the messages, how many of these PostgreSQL has no more, and
-- the end.
WITH counted AS (
    SELECT count(*) AS files, coalesce(sum(rows) FILTER (WHERE "table" = 'messages'), 0) AS messages
    FROM delivery_archivefile file
    JOIN delivery_archivechunk chunk ON chunk.id = file.chunk_id
    LEFT JOIN delivery_archivechunk replacing ON replacing.id = file.replaced_by_id
    WHERE chunk.state = 'DONE' AND replacing.state IS DISTINCT FROM 'DONE'
), mark AS (
    SELECT max(until) AS until FROM delivery_archived
)
SELECT
    files, messages::bigint,
    greatest(
        messages
        - (SELECT count(*) FROM delivery_message WHERE published_at < (SELECT until FROM mark)),
        0
    )::bigint AS nowhere_else,
    (SELECT until FROM mark) AS until
FROM counted
