-- Locks those of these messages that exist against removal until the transaction ends; returns
-- their ids.
-- Waits for a removal that is under way; the message then no longer exists.
SELECT id FROM delivery_message WHERE id = ANY (%(message)s::bigint[]) ORDER BY id FOR KEY SHARE
