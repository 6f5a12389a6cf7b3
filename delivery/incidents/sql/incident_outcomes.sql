-- The outcomes of an incident's deliveries, up to a limit: how many have which status. Deliveries
-- removed by retention have none.
SELECT coalesce(delivery.status, 'removed') AS status, count(*) AS count
FROM (
    SELECT delivery_id
    FROM delivery_incidentdelivery
    WHERE incident_id = %(incident)s
    LIMIT %(limit)s
) AS failed
LEFT JOIN delivery_delivery delivery ON delivery.id = failed.delivery_id
GROUP BY 1
ORDER BY count(*) DESC, 1
