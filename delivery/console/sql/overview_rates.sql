-- Messages accepted and deliveries delivered per second, over the minute before a moment. Each
-- reads at most the newest %(limit)s rows of an index (message_by_time, delivery_settled_at): when
-- there are more, the rate is over the time they span. So the cost has an upper bound at any load.
WITH accepted AS (
    SELECT published_at AS at
    FROM delivery_message
    WHERE published_at > %(since)s AND published_at <= %(now)s
    ORDER BY published_at DESC
    LIMIT %(limit)s
),
settled AS (
    SELECT settled_at AS at, status
    FROM delivery_settled
    WHERE settled_at > %(since)s AND settled_at <= %(now)s
    ORDER BY settled_at DESC
    LIMIT %(limit)s
)
SELECT
    (SELECT rate FROM (
        SELECT count(*) / greatest(
            extract(
                epoch FROM %(now)s - CASE WHEN count(*) < %(limit)s THEN %(since)s ELSE min(at) END
            ),
            0.001
        ) AS rate
        FROM accepted
    ) AS a)::float AS accepted,
    (SELECT rate FROM (
        SELECT count(*) FILTER (WHERE status = 'DELIVERED') / greatest(
            extract(
                epoch FROM %(now)s - CASE WHEN count(*) < %(limit)s THEN %(since)s ELSE min(at) END
            ),
            0.001
        ) AS rate
        FROM settled
    ) AS d)::float AS delivered
