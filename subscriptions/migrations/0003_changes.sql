-- Writes the transaction of a row's last change into it.
CREATE FUNCTION subscriptions_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END
$$;

-- Records the transactions that changed configuration cached for publishing.
CREATE FUNCTION subscriptions_note_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO subscriptions_configurationtransaction (id, changed_at)
    VALUES (pg_current_xact_id()::text::bigint, now())
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

-- Returns an endpoint without its method prefix: the circuit breaker has one row per URL.
CREATE FUNCTION subscriptions_url(endpoint text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(endpoint, '^[A-Za-z]+:(https?://)', '\1')
$$;
CREATE INDEX subscription_url ON subscriptions_subscription (subscriptions_url(endpoint));
