-- Stores the UUID of the archive, unless it is set, and returns the valid UUID.
INSERT INTO delivery_archiveidentity AS known (id, uuid) VALUES (1, %(uuid)s)
ON CONFLICT (id) DO UPDATE SET uuid = coalesce(known.uuid, excluded.uuid)
RETURNING uuid
