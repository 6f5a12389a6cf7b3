-- Says of chunks that their hours were rolled up; to be executed in the transaction that writes those.
UPDATE delivery_archivechunk SET is_rolled_up = true WHERE id = ANY (%(chunk)s::bigint[]) AND NOT is_rolled_up
