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

-- Count the versions of a script, whichever code writes it.
CREATE FUNCTION subscriptions_count_scripts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.script_version := (NEW.script <> '')::int;
    ELSE
        NEW.script_version := OLD.script_version + (NEW.script <> OLD.script)::int;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER count_scripts BEFORE INSERT OR UPDATE ON subscriptions_subscription
FOR EACH ROW EXECUTE FUNCTION subscriptions_count_scripts();

-- Count the changes of common scripts, so that no way of writing one is forgotten.
CREATE FUNCTION subscriptions_count_common_scripts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO subscriptions_scriptlibrary AS library (id, version) VALUES (1, 1)
    ON CONFLICT (id) DO UPDATE SET version = library.version + 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_common_scripts
AFTER INSERT OR DELETE OR UPDATE OF name, text, runs_first ON subscriptions_commonscript
FOR EACH STATEMENT EXECUTE FUNCTION subscriptions_count_common_scripts();

-- The effective status of a subscription: its own, its subscriber's and the installation's combined.
CREATE VIEW subscriptions_standing AS
SELECT
    subscription.id, subscription.subscriber_id,
    CASE
        WHEN 'INACTIVE' IN (subscription.status, subscriber.status) THEN 'INACTIVE'
        WHEN subscription.status = 'SHADOW' THEN 'SHADOW'
        WHEN 'HELD' IN (subscription.status, subscriber.status) THEN 'HELD'
        WHEN EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD') THEN 'HELD'
        ELSE 'ACTIVE'
    END AS status
FROM subscriptions_subscription subscription
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id;
