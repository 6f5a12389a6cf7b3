-- The logged attempts of the deliveries with ids from %(first)s to %(last)s: the last led to the
-- status, the others failed.
INSERT INTO delivery_loggedattempt (
    delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
)
SELECT
    delivery.id, number,
    message.published_at + interval '30 seconds' * pow(number - 1, 2) + interval '15 milliseconds',
    CASE WHEN ending.outcome = 'LOST' THEN NULL ELSE 5 + (delivery.id * 31 + number * 7) %% 900 END,
    ending.outcome, ending.status_code,
    CASE WHEN ending.outcome = 'UNREACHABLE' THEN 'connection refused' ELSE '' END,
    CASE
        WHEN ending.outcome IN ('SUCCESS', 'LOST', 'ACKNOWLEDGED', 'UNREACHABLE', 'RELEASED')
            THEN ''::bytea
        ELSE convert_to(
            '<html><body>The service answered ' || ending.status_code || '.</body></html>', 'UTF8'
        )
    END
FROM delivery_delivery delivery
JOIN delivery_message message ON message.id = delivery.message_id
CROSS JOIN LATERAL generate_series(1, delivery.attempts) AS number
CROSS JOIN LATERAL (
    SELECT delivery.lane_id IS NULL AS is_fetched, number < delivery.attempts AS is_earlier
) AS about
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN is_earlier THEN CASE WHEN is_fetched THEN 'RELEASED' ELSE 'SERVER_ERROR' END
            WHEN is_fetched
                THEN CASE WHEN delivery.status = 'DELIVERED' THEN 'ACKNOWLEDGED' ELSE 'RELEASED' END
            WHEN delivery.status = 'REJECTED' THEN 'CLIENT_ERROR'
            WHEN delivery.status = '3xxNOTSUPPORTED' THEN 'REDIRECT'
            WHEN delivery.status = 'IN_DOUBT' THEN 'LOST'
            WHEN delivery.status = 'CANCELLED' THEN 'UNAVAILABLE'
            WHEN delivery.status = 'PENDING' THEN 'UNREACHABLE'
            ELSE 'SERVER_ERROR'
        END AS outcome,
        CASE
            WHEN is_fetched THEN NULL
            WHEN is_earlier THEN 500
            WHEN delivery.status = 'REJECTED' THEN 404
            WHEN delivery.status = '3xxNOTSUPPORTED' THEN 301
            WHEN delivery.status = 'CANCELLED' THEN 503
            WHEN delivery.status = 'FAILED' THEN 500
        END AS status_code
) AS ending
WHERE delivery.id BETWEEN %(first)s AND %(last)s AND (is_earlier OR delivery.started_at IS NULL)
ORDER BY delivery.id, number
