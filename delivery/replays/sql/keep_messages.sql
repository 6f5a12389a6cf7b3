-- Locks those of these messages that are there, so that nobody removes them until the transaction ends; returns their ids.
-- Who is just removing one is waited for, and then it is not there.
SELECT id FROM delivery_message WHERE id = ANY (%(message)s::bigint[]) ORDER BY id FOR KEY SHARE
