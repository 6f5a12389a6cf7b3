-- Shows the server that a sender with nothing to commit is alive.
SELECT 1
