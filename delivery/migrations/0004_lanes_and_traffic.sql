-- The lanes that deliveries of a subscription may be in: its subscriber's lane and the retry lane,
-- or the lanes of the queue senders, or the callback lane.
CREATE VIEW delivery_subscriptionlane AS
SELECT subscription.id AS subscription_id, lane.id AS lane_id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
WHERE event_type.kind <> 'QUEUE'
UNION ALL
SELECT subscription.id, lane.id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_lane lane ON lane.kind = event_type.kind
WHERE event_type.kind = 'QUEUE'
UNION ALL
SELECT subscription.id, lane.id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_lane lane
    ON lane.kind = CASE WHEN event_type.name = 'Inturn.Callback' THEN 'CALLBACK' ELSE 'RETRY' END
WHERE event_type.kind = 'TOPIC';

-- The subscriptions that senders may send to: ACTIVE, with an ACTIVE subscriber, unless all sending
-- is HELD; without a running cancellation of their backlog, and with a URL that the circuit breaker
-- has not disabled, unless a probe is due. The view reads only subscribers that are not ACTIVE, by
-- the index subscriber_held, which is empty while none is held. Changes of these rows, and the
-- clock, change the result, so each read of deliveries queries the view again.
CREATE VIEW delivery_sendable AS
SELECT subscription.id, subscription.subscriber_id, subscription.event_type_id
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.status = 'ACTIVE' AND subscription.cancellation_id IS NULL
    AND NOT EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD')
    AND NOT EXISTS (
        SELECT
        FROM subscriptions_subscriber subscriber
        WHERE subscriber.id = subscription.subscriber_id AND subscriber.status <> 'ACTIVE'
    ) AND NOT (
        policy.breaks_circuit AND EXISTS (
            SELECT
            FROM delivery_urlhealth health
            WHERE health.url = subscriptions_url(subscription.endpoint)
                AND (health.state = 'FROZEN' OR health.next_probe_at > now())
        )
    );

-- The state of each PUSH subscription's endpoint: from its lane, and from its URL if its policy
-- breaks the circuit.
CREATE VIEW delivery_endpointsummary AS
SELECT
    subscription.id AS subscription_id,
    coalesce(url.state, CASE WHEN health.subscription_id IS NULL THEN 'UP' ELSE 'DOWN' END) AS state,
    url.url,
    coalesce(url.since, health.since) AS since,
    CASE
        WHEN url.state IS NULL THEN coalesce(health.reason, '')
        ELSE url.failures_in_row || ' attempts at its URL failed in a row'
    END AS reason,
    CASE WHEN url.state IS NULL THEN health.next_try_at ELSE url.next_probe_at END AS next_try_at
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
LEFT JOIN delivery_endpointhealth health ON health.subscription_id = subscription.id
LEFT JOIN delivery_urlhealth url
    ON policy.breaks_circuit AND url.state <> 'ENABLED' AND url.url = subscriptions_url(subscription.endpoint)
WHERE subscription.mode = 'PUSH';

CREATE TRIGGER note_change BEFORE INSERT OR UPDATE OF state ON delivery_urlhealth
FOR EACH ROW EXECUTE FUNCTION subscriptions_note_change();

-- The rows of these tables change within moments. Free space on each page lets updates stay on it,
-- and vacuum runs early, after a number of rows rather than a share, so that the partial indexes
-- stay small.
ALTER TABLE delivery_lane SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000
);
ALTER TABLE delivery_trafficminute SET (fillfactor = 50);
ALTER TABLE delivery_subscriptiontraffic SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000
);
ALTER TABLE delivery_trafficmark SET (
    fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500
);
