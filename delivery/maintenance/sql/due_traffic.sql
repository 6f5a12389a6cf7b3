-- The next interval of traffic to count: from the mark, at most `furthest` ago, until a time before
-- which all is committed.
-- After a long time without traffic it ends soon after the next message or settlement, found by
-- message_by_time and delivery_settled_at.
SELECT
    piece.since,
    least(
        certain.until,
        coalesce(least(first.published_at, first.settled_at) + %(longest)s::interval, certain.until)
    )
FROM (
    SELECT greatest(
        (SELECT until FROM delivery_trafficmark WHERE id = 1),
        statement_timestamp() - %(furthest)s::interval
    ) AS since
) AS piece
CROSS JOIN (
    -- Rows carry a time after the beginning of their transaction. Very long transactions are not
    -- waited for.
    SELECT least(
        statement_timestamp() - %(lag)s::interval,
        greatest(
            statement_timestamp() - %(longest_lag)s::interval,
            coalesce(min(xact_start), statement_timestamp())
        )
    ) AS until
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
) AS certain
CROSS JOIN LATERAL (
    SELECT
        (
            SELECT min(published_at) FROM delivery_message WHERE published_at >= piece.since
        ) AS published_at,
        (SELECT min(settled_at) FROM delivery_settled WHERE settled_at >= piece.since) AS settled_at
) AS first
