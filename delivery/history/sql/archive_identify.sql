-- Stores the UUID of the archive, unless it has one, and returns the one it has.
INSERT INTO delivery_archiveidentity AS known (id, uuid) VALUES (1, %(uuid)s)
ON CONFLICT (id) DO UPDATE SET uuid = coalesce(known.uuid, excluded.uuid)
RETURNING uuid
