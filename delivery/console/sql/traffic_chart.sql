-- Messages accepted, deliveries delivered and failed, for each step of an interval. Reads a row for
-- each minute by primary key.
SELECT
    date_bin(%(step)s::interval, at, 'epoch') AS begins_at,
    sum(accepted) AS accepted, sum(delivered) AS delivered, sum(failed) AS failed
FROM delivery_trafficminute
WHERE at >= %(since)s AND at < %(until)s
GROUP BY begins_at
