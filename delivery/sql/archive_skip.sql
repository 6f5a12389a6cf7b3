-- Moves the watermark over a piece of time in which nothing happened.
INSERT INTO delivery_archived AS mark (id, until) VALUES (1, %(until)s)
ON CONFLICT (id) DO UPDATE SET until = excluded.until WHERE excluded.until > mark.until
