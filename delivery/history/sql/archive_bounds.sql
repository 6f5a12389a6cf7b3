-- Returns the number of rows of a relation in an interval, and the ids to divide them into ranges
-- of about equal size, from the first id to the last plus 1: of about `rows` each, but at most
-- `most` ranges. A sample decides the ids, the `share` of the rows: to sort all ids takes longer
-- than to find them.
WITH counted AS (
    SELECT
        count(*) AS rows, min({id}) AS first, max({id}) + 1 AS last,
        least(%(most)s, ceil(count(*)::float8 / %(rows)s))::int AS ranges,
        array_agg({id}) FILTER (WHERE random() < %(share)s) AS sample
    FROM {relation}
    WHERE {at} >= %(since)s AND {at} < %(until)s
), shares AS (
    SELECT array_agg(part::float8 / ranges ORDER BY part) AS share
    FROM counted, generate_series(1, ranges - 1) AS part
)
SELECT
    rows,
    array_remove(
        first || coalesce(
            (
                SELECT percentile_disc(shares.share) WITHIN GROUP (ORDER BY id)
                FROM unnest(sample) AS id
            ),
            '{{}}'
        ) || last,
        NULL
    ) AS bounds
FROM counted, shares
