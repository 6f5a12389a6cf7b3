-- Takes the keys that no earlier import has taken, and returns them.
-- Waits for another import that is taking one of them; in the order of the keys, so that two
-- imports never deadlock.
INSERT INTO delivery_importedkey (key, digest)
SELECT key, digest
FROM unnest(%(key)s::bytea[], %(digest)s::bytea[]) AS wanted (key, digest)
ORDER BY key
ON CONFLICT (key) DO NOTHING
RETURNING key
