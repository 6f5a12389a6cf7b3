-- Locks a replay, so the state does not change until the transaction ends.
SELECT state FROM delivery_replay WHERE id = %(replay)s FOR NO KEY UPDATE
