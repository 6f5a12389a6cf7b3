-- Takes the keys not taken by an earlier import, and returns them. Waits for another import taking
-- any of them; in the order of the keys, so two imports never deadlock.
INSERT INTO delivery_importedkey (key, digest)
SELECT key, digest
FROM unnest(%(key)s::bytea[], %(digest)s::bytea[]) AS wanted (key, digest)
ORDER BY key
ON CONFLICT (key) DO NOTHING
RETURNING key
