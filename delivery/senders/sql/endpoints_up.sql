-- Deletes rows of endpoints that are no longer DOWN, whichever lane wrote them: an attempt there,
-- or a probe, has shown that.
DELETE FROM delivery_endpointhealth health
USING json_to_recordset(%(rows)s::json) AS up (subscription_id bigint)
WHERE health.subscription_id = up.subscription_id
