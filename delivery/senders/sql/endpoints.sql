-- The columns of subscriptions that a sender needs.
-- The version is made from those of the rows (no clock is used: those of web servers may differ);
-- `changed_subscriptions.sql` makes the same version.
SELECT
    subscription.id, lane.id AS lane_id, concat_ws(
        ' ', subscription.xmin, policy.xmin, subscriber.status, md5(subscriber.headers),
        CASE WHEN summary.url IS NOT NULL THEN summary.state END,
        CASE WHEN subscription.script <> '' THEN library.version END, (
            SELECT string_agg(secret.id || ':' || secret.xmin, ' ' ORDER BY secret.id)
            FROM subscriptions_signingsecret secret
            WHERE secret.subscription_id = subscription.id
                AND (secret.expires_at IS NULL OR secret.expires_at > now())
        )
    ) AS version,
    subscription.status = 'ACTIVE' AND subscription.cancellation_id IS NULL
        AND NOT held.is_whole AS is_active,
    subscription.status = 'ACTIVE' AND held.is_whole AS is_held_whole,
    summary.url IS NOT NULL AS is_disabled,
    subscription.endpoint, subscription.headers, subscriber.headers AS subscriber_headers,
    subscription.auth, subscription.timeout_seconds, subscription.probe_url,
    ARRAY(SELECT jsonb_array_elements_text(subscription.forward_headers)) AS forward_headers,
    subscription.forward_authorization,
    subscription.script, CASE WHEN subscription.script_version > 0 THEN
        subscription.script_version + coalesce(library.version, 0) ELSE 0 END AS script_version,
    common.names AS common_names, common.texts AS common_texts, common.first AS common_first,
    policy.name, policy.success_codes, policy.on_unreachable, policy.on_unavailable,
    policy.on_server_error, policy.on_rate_limited, policy.on_client_error, policy.on_redirect,
    policy.in_doubt, policy.blocks_when_overloaded, policy.pause_seconds, policy.pause_max_seconds,
    policy.retry_after_max_seconds, policy.retry_schedule, policy.retry_seconds, policy.retry_waits,
    policy.retry_jitter, policy.max_attempts, policy.when_used_up, policy.suspends_on_reject,
    policy.probe_seconds, policy.breaks_circuit,
    ARRAY(
        SELECT secret.secret
        FROM subscriptions_signingsecret secret
        WHERE secret.subscription_id = subscription.id
            AND (secret.expires_at IS NULL OR secret.expires_at > now())
        ORDER BY secret.id DESC
    ) AS secrets
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
CROSS JOIN LATERAL (
    SELECT subscriber.status <> 'ACTIVE' OR EXISTS (
        SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD'
    ) AS is_whole
) AS held
JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
LEFT JOIN delivery_endpointsummary summary ON summary.subscription_id = subscription.id
LEFT JOIN subscriptions_scriptlibrary library ON library.id = 1
LEFT JOIN LATERAL (
    -- Those that the script may include, and a few more: names are compared by their beginnings.
    WITH RECURSIVE included (name, text, runs_first) AS (
        SELECT one.name, one.text, one.runs_first
        FROM subscriptions_commonscript one
        WHERE one.runs_first OR position('$include$' || one.name IN subscription.script) > 0
        UNION
        SELECT one.name, one.text, one.runs_first
        FROM included
        JOIN subscriptions_commonscript one
            ON position('$include$' || one.name IN included.text) > 0
    )
    SELECT
        array_agg(name) AS names, array_agg(text) AS texts,
        array_agg(name) FILTER (WHERE runs_first) AS first
    FROM included
) AS common ON subscription.script <> ''
WHERE subscription.id = ANY (%(subscription)s::bigint[])
