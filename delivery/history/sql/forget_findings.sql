-- Removes the findings of a run, to be written anew in the same transaction.
DELETE FROM delivery_finding WHERE run_id = %(run)s
