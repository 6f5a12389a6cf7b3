-- Locks these messages, as far as they exist, against removal until the transaction ends; returns
-- their ids. Waits for a running removal; the message then no longer exists.
SELECT id FROM delivery_message WHERE id = ANY (%(message)s::bigint[]) ORDER BY id FOR KEY SHARE
