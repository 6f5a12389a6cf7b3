-- Deletes the oldest journal entries, up to a limit and a time, and returns how many.
-- By id, which is nearly the order of time: one that is out of it goes a little later.
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
