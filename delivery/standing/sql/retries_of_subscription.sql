-- The deliveries of a subscription in the retry lane, up to a limit, the number due now, and the
-- time of the next; uses delivery_due.
SELECT
    (SELECT count(*) FROM (
        SELECT
        FROM delivery_waiting delivery
        WHERE delivery.lane_id = lane.id AND delivery.subscription_id = %(subscription)s
            AND delivery.status = 'PENDING' AND delivery.next_attempt_at IS NOT NULL
        LIMIT %(limit)s + 1
    ) AS counted) AS waiting,
    (SELECT count(*) FROM (
        SELECT
        FROM delivery_waiting delivery
        WHERE delivery.lane_id = lane.id AND delivery.subscription_id = %(subscription)s
            AND delivery.status = 'PENDING' AND delivery.next_attempt_at <= now()
        LIMIT %(limit)s + 1
    ) AS counted) AS due,
    (
        SELECT delivery.next_attempt_at
        FROM delivery_waiting delivery
        WHERE delivery.lane_id = lane.id AND delivery.subscription_id = %(subscription)s
            AND delivery.status = 'PENDING' AND delivery.next_attempt_at > now()
        ORDER BY delivery.next_attempt_at
        LIMIT 1
    ) AS next_at
FROM delivery_lane lane
WHERE lane.kind = 'RETRY'
