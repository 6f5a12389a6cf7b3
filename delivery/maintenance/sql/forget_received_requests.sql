-- Deletes the requests to built-in receivers before a time; returns their number. There are few:
-- each receiver keeps the last requests only, and the number of receivers is limited.
WITH forgotten AS (
    DELETE FROM delivery_receivedrequest WHERE at < %(until)s RETURNING id
)
SELECT count(*) FROM forgotten
