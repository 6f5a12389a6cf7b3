-- Returns the status of deliveries; it is a separate statement, to see the commits of the
-- transactions for which `take_delivered_keys.sql` waited.
SELECT id, status FROM delivery_delivery WHERE id = ANY (%(delivery)s::bigint[])
