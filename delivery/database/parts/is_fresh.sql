-- True of the waiting delivery `it` if it may still be sent: it is not expired, and a VOLATILE one
-- is of this start of the server. `delivery.maintenance.expiry` settles all others.
({it}.expires_at IS NULL OR {it}.expires_at > now())
AND ({it}.server_started_at IS NULL OR {it}.server_started_at = pg_postmaster_start_time())
