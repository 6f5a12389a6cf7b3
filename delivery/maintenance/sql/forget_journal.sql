-- Deletes the oldest journal entries, up to a limit and a time; returns their number.
-- In the order of ids, which is nearly the order of time: an entry out of order is deleted a little
-- later.
WITH forgotten AS (
    DELETE FROM delivery_journalentry
    WHERE id = ANY (ARRAY(
        SELECT id
        FROM (SELECT id, at FROM delivery_journalentry ORDER BY id LIMIT %(limit)s) AS oldest
        WHERE at < %(until)s
    ))
    RETURNING id
)
SELECT count(*) FROM forgotten
