-- Selects the deliveries to archive, without the columns that follow from their subscriptions:
-- settled in an interval, in a range of ids.
-- Leans on delivery_settled_at and earlier_settlement_at. Each message is looked up: neighbouring
-- deliveries have the same message or neighbouring ones.
SELECT
    settled.delivery_id AS id, settled.settled_at, settled.status, settled.message_id,
    message.published_at, settled.subscription_id, settled.queue_group::int AS queue_group,
    settled.callback_id, settled.replay_id, settled.attempts, settled.attempts_before,
    settled.settled_before, settled.redelivery, settled.reason, settled.receive_count,
    message.body_bytes, output.output_sha256, message.transaction_id, message.seen_before
FROM (
    -- Found by their times and sorted later, whatever the planner expects: in the order of ids it
    -- would read all older ones.
    SELECT *
    FROM delivery_settlement
    WHERE settled_at >= %(since)s AND settled_at < %(until)s
        AND delivery_id >= %(first)s AND delivery_id < %(last)s
    OFFSET 0
) AS settled
CROSS JOIN LATERAL (
    SELECT published_at, octet_length(body)::bigint AS body_bytes, transaction_id, seen_before
    FROM delivery_message
    WHERE id = settled.message_id
    OFFSET 0
) AS message
-- The output of its script before it was settled: of a delivery that was sent again, a later output
-- belongs to a later settlement.
LEFT JOIN LATERAL (
    SELECT encode(sha256(body), 'hex') AS output_sha256
    FROM delivery_scriptoutput
    WHERE delivery_id = settled.delivery_id AND made_at <= settled.settled_at
    OFFSET 0
) AS output ON true
