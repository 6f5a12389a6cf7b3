-- Selects the deliveries to archive: settled in an interval, in a range of ids. The columns derived
-- from their subscriptions and messages are added later. The last three columns are the successful
-- attempt in the delivery's own row; null if it has none, or has earlier settlements: it may be
-- archived with an outcome. Leans on delivery_settled_at and earlier_settlement_at.
SELECT
    settled.delivery_id AS id, settled.settled_at, settled.status, settled.message_id,
    settled.subscription_id, settled.queue_group::int AS queue_group, settled.callback_id,
    settled.replay_id, settled.attempts, settled.attempts_before, settled.settled_before,
    settled.redelivery, settled.reason, settled.receive_count, output.output_sha256,
    settled.started_at, settled.duration_ms, settled.status_code::int AS status_code
FROM (
    -- Sorted later, whatever the planner expects: in the order of ids it would read all older rows.
    SELECT
        settled_at, status, attempts, attempts_before, settled_before, redelivery, reason,
        receive_count, message_id, subscription_id, queue_group, callback_id, replay_id,
        id AS delivery_id, duration_ms, status_code,
        CASE
            WHEN NOT EXISTS (
                SELECT FROM delivery_earliersettlement WHERE delivery_id = delivery_settled.id
            ) THEN started_at
        END AS started_at
    FROM delivery_settled
    WHERE settled_at >= %(since)s AND settled_at < %(until)s AND id >= %(first)s AND id < %(last)s
    UNION ALL
    SELECT
        settled_at, status, attempts, attempts_before, settled_before, redelivery, reason,
        receive_count, message_id, subscription_id, queue_group, callback_id, replay_id,
        delivery_id, NULL, NULL, NULL
    FROM delivery_earliersettlement
    WHERE settled_at >= %(since)s AND settled_at < %(until)s AND delivery_id >= %(first)s
        AND delivery_id < %(last)s AND NOT is_amended
    OFFSET 0
) AS settled
-- The script's output before the settlement: of a delivery sent again, a later output belongs to a
-- later settlement.
LEFT JOIN LATERAL (
    SELECT encode(sha256(body), 'hex') AS output_sha256
    FROM delivery_scriptoutput
    WHERE delivery_id = settled.delivery_id AND made_at <= settled.settled_at
        -- Executed once: to look into the table for each delivery takes a third of the statement's
        -- time, and usually it is empty.
        AND EXISTS (
            SELECT FROM delivery_scriptoutput
            WHERE delivery_id >= %(first)s AND delivery_id < %(last)s
        )
    OFFSET 0
) AS output ON true
