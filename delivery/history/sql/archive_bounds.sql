-- Returns the number of rows of a relation in an interval, and the ids that divide them into ranges
-- of about equal size: of about `rows` each, but at most `most` ranges. Of many rows a sample
-- decides that: to sort all ids takes as long as to find them.
WITH found AS MATERIALIZED (
    SELECT {id} AS id FROM {relation} WHERE {at} >= %(since)s AND {at} < %(until)s
), counted AS (
    SELECT count(*) AS rows, least(%(most)s, ceil(count(*)::float8 / %(rows)s))::int AS ranges
    FROM found
), shares AS (
    SELECT array_agg(part::float8 / ranges ORDER BY part) AS share
    FROM counted, generate_series(1, ranges - 1) AS part
), sample AS (
    SELECT id FROM found, counted WHERE random() * rows < 20000
)
SELECT
    rows,
    coalesce(
        (SELECT percentile_disc(shares.share) WITHIN GROUP (ORDER BY id) FROM sample), '{{}}'
    ) AS bounds
FROM counted, shares
