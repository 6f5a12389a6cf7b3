-- Removes the hours to be written again by the same transaction. Leans on history_hour_once.
DELETE FROM delivery_historyhour AS old
USING unnest(%(since)s::timestamptz[], %(until)s::timestamptz[]) AS span (since, until)
WHERE %(everything)s OR (old.hour >= span.since AND old.hour < span.until)
