-- Applies the breaker's rules to the URLs of the attempts just counted, and writes the journal.
-- Too many failures disable a URL, a success enables a disabled one, days without a success freeze
-- it; after a failed probe the next one comes after a while. An answer of 410 freezes it at once if
-- a policy of its subscription says so. Only a person releases a frozen URL.
WITH tried AS (
    SELECT
        subscriptions_url(subscription.endpoint) AS url, bool_or(tried.has_success) AS has_success,
        bool_or(tried.is_gone AND policy.freezes_when_gone) AS is_gone,
        min(subscription.id) AS subscription_id, max(policy.breaker_percent) AS percent,
        max(policy.breaker_attempts) AS attempts, max(policy.breaker_failures) AS failures,
        max(policy.breaker_probe_seconds) AS probe_seconds,
        max(policy.freeze_failures) AS freeze_failures, max(policy.freeze_hours) AS freeze_hours,
        max(policy.freeze_failures_at_once) AS freeze_failures_at_once
    FROM json_to_recordset(%(rows)s::json) AS tried (
        subscription_id bigint, has_success bool, is_gone bool
    )
    JOIN subscriptions_subscription subscription ON subscription.id = tried.subscription_id
    JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
    GROUP BY subscriptions_url(subscription.endpoint)
), judged AS (
    SELECT
        tried.*, health.state AS old_state, CASE
            WHEN health.state = 'FROZEN' OR tried.is_gone THEN 'FROZEN'
            WHEN health.failures_in_row >= tried.freeze_failures_at_once
                OR health.failures_in_row > tried.freeze_failures
                AND extract(epoch FROM now() - health.last_success_at) > tried.freeze_hours * 3600.0
                THEN 'FROZEN'
            WHEN health.state = 'DISABLED' AND NOT tried.has_success THEN 'DISABLED'
            WHEN health.state = 'ENABLED' AND (
                health.failures_in_row >= tried.failures
                OR health.attempts > tried.attempts
                AND health.failures * 100 > health.attempts * tried.percent
            ) THEN 'DISABLED'
            ELSE 'ENABLED'
        END AS new_state
    FROM tried
    JOIN delivery_urlhealth health ON health.url = tried.url
), changed AS (
    UPDATE delivery_urlhealth health
    SET state = judged.new_state,
        since = CASE WHEN judged.new_state <> judged.old_state THEN now() ELSE health.since END,
        next_probe_at = CASE
            WHEN judged.new_state = 'DISABLED'
                THEN now() + make_interval(secs => judged.probe_seconds)
        END,
        attempts = CASE
            WHEN judged.new_state = 'ENABLED' AND judged.old_state = 'DISABLED' THEN 0
            ELSE health.attempts
        END,
        failures = CASE
            WHEN judged.new_state = 'ENABLED' AND judged.old_state = 'DISABLED' THEN 0
            ELSE health.failures
        END
    FROM judged
    WHERE health.url = judged.url
        AND (judged.new_state <> judged.old_state OR judged.new_state = 'DISABLED')
    RETURNING health.url, health.failures, health.attempts, health.failures_in_row
)
INSERT INTO delivery_journalentry (kind, text, actor, subscription_id)
SELECT
    judged.new_state,
    CASE judged.new_state
        WHEN 'ENABLED' THEN shown.url || ' is enabled again: a probe succeeded.'
        WHEN 'DISABLED'
            THEN shown.url || ' is disabled: ' || changed.failures || ' of ' || changed.attempts
                || ' attempts failed, ' || changed.failures_in_row
                || ' in a row. It is probed now and then.'
        ELSE shown.url || ' is frozen: ' || CASE
            WHEN judged.is_gone THEN 'it answered 410 (Gone).'
            ELSE changed.failures_in_row || ' attempts failed in a row.'
        END || ' Release it when it works again.'
    END,
    '', judged.subscription_id
FROM judged
JOIN changed ON changed.url = judged.url
CROSS JOIN LATERAL (SELECT subscriptions_masked_url(judged.url) AS url) AS shown
WHERE judged.new_state <> judged.old_state
