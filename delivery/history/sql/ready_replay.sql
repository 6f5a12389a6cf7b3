-- Sets a replay to READY, counted and with all items, in the transaction that copied them.
UPDATE delivery_replay
SET state = 'READY', count = %(count)s, preview = %(preview)s::jsonb
WHERE id = %(replay)s AND state = 'SELECTING'
