-- Compares the existing causes with the incidents not CLOSED: adds new causes as WATCHED, records
-- which causes are absent and since when, and forgets long absent WATCHED causes. Only the given
-- kinds are compared. `found` has the causes of `find_causes.sql`; those of stopped lanes,
-- endpoints and URLs are read here, for there may be thousands. Sets are compared by NOT IN, which
-- hashes even where joins may not. FAILURES are in `add_failures.sql`.
WITH rule AS MATERIALIZED (
    SELECT kind
    FROM delivery_incidentrule
    WHERE is_on AND kind = ANY (%(kinds)s::text[])
), present AS MATERIALIZED (
    SELECT
        'LANE ' || lane.lane_id AS key, rule.kind, lane.cause AS severity_of,
        lane.since AS first_at, lane.lane_id, NULL::bigint AS subscription_id, lane.delivery_id,
        '' AS url, 0::bigint AS count
    FROM rule
    JOIN delivery_stoppedlane lane ON lane.state = 'STOPPED'
    WHERE rule.kind = 'LANE'
    UNION ALL
    -- While the lane in order of a delivery is stopped, or about to continue, it is the incident.
    SELECT
        'ENDPOINT ' || health.subscription_id, rule.kind, '', health.since, health.lane_id,
        health.subscription_id, health.delivery_id, '', 0
    FROM rule
    JOIN delivery_endpointhealth health ON health.subscription_id > 0
    CROSS JOIN LATERAL (
        SELECT state FROM delivery_subscriptionstop
        WHERE subscription_id = health.subscription_id
        LIMIT 1
    ) AS stop
    JOIN delivery_lane lane ON lane.id = health.lane_id
    LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
    WHERE rule.kind = 'ENDPOINT' AND stop.state = 'DOWN'
        AND (subscriber.processing IS DISTINCT FROM 'SERIAL' OR lane.state = 'IDLE')
    UNION ALL
    SELECT
        'URL ' || md5(health.url), rule.kind, health.state, health.since, NULL, NULL, NULL,
        health.url, 0
    FROM rule
    JOIN delivery_urlhealth health ON health.state <> 'ENABLED'
    WHERE rule.kind = 'URL'
    UNION ALL
    SELECT
        found.key, rule.kind, '', coalesce(found.first_at, statement_timestamp()),
        found.lane_id, found.subscription_id, found.delivery_id, '', found.count
    FROM rule
    JOIN json_to_recordset(%(found)s::json) AS found (
        key text, kind text, first_at timestamptz, lane_id bigint, subscription_id bigint,
        delivery_id bigint, count bigint
    ) ON found.kind = rule.kind
), added AS (
    INSERT INTO delivery_incident (
        key, kind, severity, first_at, lane_id, subscription_id, delivery_id, url, count
    )
    SELECT
        key, kind,
        CASE WHEN severity_of = 'FROZEN' OR kind IN ('VERIFY', 'DISK') THEN 'CRITICAL'
            ELSE 'WARNING' END,
        first_at, lane_id, subscription_id, delivery_id, url, count
    FROM present
    WHERE key NOT IN (SELECT key FROM delivery_incident WHERE state <> 'CLOSED')
    ON CONFLICT DO NOTHING
    RETURNING 1
), seen AS (
    -- Only a change to announce is written: a new head, a frozen URL, more IN_DOUBT deliveries.
    UPDATE delivery_incident incident
    SET absent_since = NULL, delivery_id = present.delivery_id, count = present.count,
        severity = CASE WHEN present.severity_of = 'FROZEN' THEN 'CRITICAL'
            ELSE incident.severity END,
        is_changed = incident.is_changed OR incident.state = 'OPEN' AND (
            incident.delivery_id IS DISTINCT FROM present.delivery_id
            AND present.kind NOT IN ('OLDEST', 'RETRYING')
            OR present.severity_of = 'FROZEN' AND incident.severity <> 'CRITICAL'
        )
    FROM present
    WHERE incident.key = present.key AND incident.state <> 'CLOSED' AND (
        incident.absent_since IS NOT NULL OR incident.count <> present.count
        OR incident.delivery_id IS DISTINCT FROM present.delivery_id
        AND present.kind NOT IN ('OLDEST', 'RETRYING')
        OR present.severity_of = 'FROZEN' AND incident.severity <> 'CRITICAL'
    )
    RETURNING 1
), absent AS (
    UPDATE delivery_incident
    SET absent_since = statement_timestamp()
    WHERE state <> 'CLOSED' AND absent_since IS NULL AND kind = ANY (%(kinds)s::text[])
        AND key NOT IN (SELECT key FROM present)
    RETURNING 1
), forgotten AS (
    -- Failures open in this turn if they are many enough, however short the quiet time.
    DELETE FROM delivery_incident incident
    USING delivery_incidentrule rule
    WHERE incident.state = 'WATCHED' AND rule.kind = incident.kind
        AND incident.absent_since
            < statement_timestamp() - make_interval(secs => rule.quiet_seconds)
        AND NOT (
            incident.kind = 'FAILURES' AND incident.count >= coalesce(rule.bound, 1)
            AND incident.first_at
                <= statement_timestamp() - make_interval(secs => rule.after_seconds)
        )
    RETURNING incident.id
), unlinked AS (
    DELETE FROM delivery_incidentdelivery
    WHERE incident_id = ANY (ARRAY(SELECT id FROM forgotten))
)
SELECT
    (SELECT count(*) FROM added), (SELECT count(*) FROM seen), (SELECT count(*) FROM absent),
    (SELECT count(*) FROM forgotten)
