-- Ids that part the rows of a statement of the archive into ranges of about as many rows.
SELECT percentile_disc(%(shares)s::float8[]) WITHIN GROUP (ORDER BY {id}) FROM ({select}) AS found
