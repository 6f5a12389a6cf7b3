-- Takes the keys of joins; other transactions wait for them until the commit. All transactions take
-- them in a fixed order, so two never deadlock.
INSERT INTO delivery_joinkey AS known (key)
SELECT DISTINCT key FROM unnest(%(key)s::bytea[]) AS wanted (key) ORDER BY key
ON CONFLICT (key) DO UPDATE SET key = known.key
