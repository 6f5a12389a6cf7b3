-- Settles open deliveries as CANCELLED and returns which were open. What somebody has fetched from a mailbox is no longer theirs:
-- that fetch is an attempt that nobody acknowledged, and a later receipt of it finds no lease. Locked in the order of
-- their ids, as all who lock several do.
WITH open AS MATERIALIZED (
    SELECT id, status, receive_count, leased_at
    FROM delivery_delivery
    WHERE id = ANY (%(delivery)s::bigint[]) AND status IN ('PENDING', 'IN_FLIGHT')
    ORDER BY id
    FOR NO KEY UPDATE
), attempts AS (
    INSERT INTO delivery_attempt (delivery_id, number, started_at, duration_ms, outcome, error, excerpt)
    SELECT
        id, receive_count, coalesce(leased_at, now()),
        least(extract(epoch FROM now() - leased_at) * 1000, 2147483647)::int, 'UNACKNOWLEDGED', %(reason)s::text, ''
    FROM open
    WHERE status = 'IN_FLIGHT'
    ON CONFLICT DO NOTHING
)
UPDATE delivery_delivery delivery
SET status = 'CANCELLED',
    settled_at = (SELECT delivery_clock()),
    skipped = false,
    reason = %(reason)s::text,
    attempts = CASE WHEN open.status = 'IN_FLIGHT' THEN open.receive_count ELSE delivery.attempts END,
    leased_at = NULL,
    lease_token = NULL,
    lease_expires_at = NULL
FROM open
WHERE delivery.id = open.id
RETURNING delivery.id
