-- Deletes rows of endpoints that are no longer DOWN, whichever lane wrote them: an attempt there,
-- or a probe, has shown that. They are locked in the order of subscriptions, as in every statement
-- that locks several: a DELETE alone locks them in the order of its plan.
WITH up AS MATERIALIZED (
    SELECT subscription_id
    FROM delivery_endpointhealth
    WHERE subscription_id IN (
        SELECT subscription_id
        FROM json_to_recordset(%(rows)s::json) AS reached (subscription_id bigint)
    )
    ORDER BY subscription_id
    FOR UPDATE
)
DELETE FROM delivery_endpointhealth health
USING up
WHERE health.subscription_id = up.subscription_id
