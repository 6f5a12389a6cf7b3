-- Marks chunks as rolled up. Execute it in the transaction which writes their hours.
UPDATE delivery_archivechunk
SET is_rolled_up = true
WHERE id = ANY (%(chunk)s::bigint[]) AND NOT is_rolled_up
