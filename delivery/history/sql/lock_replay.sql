-- Locks a replay, so that what its state is stays so until the transaction ends.
SELECT state FROM delivery_replay WHERE id = %(replay)s FOR NO KEY UPDATE
