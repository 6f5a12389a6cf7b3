-- How many rows of a relation there are in a piece of time, and the ids that part them into ranges of about as many rows: of
-- `rows` each, but no more than `most` ranges. Ids lie about as densely everywhere: what happened at one time was made at one time.
WITH counted AS (
    SELECT count(*) AS rows, min(id) AS first, max(id) AS last, least(%(most)s, ceil(count(*)::float8 / %(rows)s))::int AS ranges
    FROM {relation}
    WHERE {at} >= %(since)s AND {at} < %(until)s
)
SELECT
    rows,
    coalesce(
        (
            SELECT array_agg(first + ((last - first) * (part::float8 / ranges))::bigint ORDER BY part)
            FROM generate_series(1, ranges - 1) AS part
        ),
        '{{}}'
    ) AS bounds
FROM counted
