-- Lets the server hear of a sender that has nothing to commit.
SELECT 1
