-- Whether there is anything that a proof until a time does not cover: a chunk of the archive, a
-- settlement that is not archived yet, or an open delivery. And the snapshot that shows it.
-- Leans on delivery_settled_at and earlier_settlement_at.
SELECT
    EXISTS (
        SELECT FROM delivery_archivechunk
        WHERE kind = 'EXPORT' AND state = 'DONE' AND until > %(until)s
    )
    OR EXISTS (SELECT FROM delivery_settlement WHERE settled_at >= %(until)s)
    OR EXISTS (SELECT FROM delivery_delivery WHERE status IN ('PENDING', 'IN_FLIGHT')) AS has_new,
    pg_current_snapshot()::text AS visible
