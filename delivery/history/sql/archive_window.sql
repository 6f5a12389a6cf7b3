-- The next interval to export: from the watermark, or the first row, to `end`, limited to a number
-- of rows and to a month. A rest of less than half of this number of rows is included: exporting it
-- separately would take seconds. Settlements ended by a person are few, and not counted. The
-- interval is empty unless `until` is after `since`. Leans on message_by_time, delivery_settled_at,
-- earlier_settlement_at and journal_by_time.
WITH piece AS (
    SELECT coalesce(
        (SELECT until FROM delivery_archived WHERE id = 1),
        least(
            (SELECT min(published_at) FROM delivery_message),
            (SELECT min(settled_at) FROM delivery_settled WHERE settled_at IS NOT NULL),
            (SELECT min(settled_at) FROM delivery_earliersettlement WHERE NOT is_amended),
            (SELECT min(at) FROM delivery_journalentry)
        ),
        %(end)s::timestamptz
    ) AS since
)
SELECT
    since,
    least(
        %(end)s::timestamptz,
        -- A worker keeps a file open for each day.
        piece.since + interval '31 days',
        (
            SELECT min(published_at) FROM delivery_message WHERE published_at > (
                SELECT published_at FROM delivery_message WHERE published_at >= piece.since
                ORDER BY published_at OFFSET %(rows)s LIMIT 1
            ) AND EXISTS (
                SELECT FROM delivery_message
                WHERE published_at >= piece.since AND published_at < %(end)s
                OFFSET %(rows)s::bigint * 3 / 2
            )
        ),
        (
            SELECT min(settled_at) FROM delivery_settled WHERE settled_at > (
                SELECT settled_at FROM delivery_settled WHERE settled_at >= piece.since
                ORDER BY settled_at OFFSET %(rows)s LIMIT 1
            ) AND EXISTS (
                SELECT FROM delivery_settled
                WHERE settled_at >= piece.since AND settled_at < %(end)s
                OFFSET %(rows)s::bigint * 3 / 2
            )
        )
    ) AS until
FROM piece
