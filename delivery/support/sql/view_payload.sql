-- Logs a person's view of the payload of a message: a row for each person, message and hour. Two
-- pages opened at the same time count as two: the second waits for the first view's row lock.
INSERT INTO delivery_payloadview AS seen (actor, message_id, hour, first_at, last_at, views)
VALUES (%(actor)s, %(message)s, date_trunc('hour', now(), 'UTC'), now(), now(), 1)
ON CONFLICT (actor, message_id, hour) DO UPDATE
SET views = seen.views + 1, last_at = greatest(seen.last_at, EXCLUDED.last_at)
RETURNING views
