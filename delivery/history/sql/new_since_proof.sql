-- Whether there is anything outside a proof until a time: a chunk of the archive, an unarchived
-- settlement, or an open delivery. And the snapshot of this look. Leans on delivery_settled_at and
-- earlier_settlement_at.
SELECT
    EXISTS (
        SELECT FROM delivery_archivechunk
        WHERE kind = 'EXPORT' AND state = 'DONE' AND until > %(until)s
    )
    OR EXISTS (SELECT FROM delivery_settlement WHERE settled_at >= %(until)s)
    OR EXISTS (SELECT FROM delivery_delivery WHERE status IN ('PENDING', 'IN_FLIGHT')) AS has_new,
    pg_current_snapshot()::text AS visible
