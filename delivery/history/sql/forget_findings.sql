-- Removes the findings of a run, which are written again in the same transaction.
DELETE FROM delivery_finding WHERE run_id = %(run)s
