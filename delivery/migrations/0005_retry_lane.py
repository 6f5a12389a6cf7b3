"""The retry lane and the callback lane, and what a subscription's URL is."""

from typing import Any

from django.db import migrations

# An endpoint without its method prefix: the circuit breaker is kept by URL.
URL_OF_ENDPOINT = r"""
CREATE FUNCTION subscriptions_url(endpoint text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(endpoint, '^[A-Za-z]+:(https?://)', '\1')
$$
"""

# In which lanes the deliveries of a subscription may be: its subscriber's and the retry lane, or those of the
# queue senders, or that of callbacks.
SUBSCRIPTION_LANE = """
CREATE OR REPLACE VIEW delivery_subscriptionlane AS
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
WHERE event_type.kind = 'TOPIC'
"""

# What senders may send: an ACTIVE subscription whose URL is not disabled by the circuit breaker, unless
# a probe is due. `since` of its parts and the clock move it, so it is asked anew with each reading.
SENDABLE = """
CREATE VIEW delivery_sendable AS
SELECT subscription.id, subscription.subscriber_id, subscription.event_type_id
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.status = 'ACTIVE' AND NOT (
    policy.breaks_circuit AND EXISTS (
        SELECT
        FROM delivery_urlhealth health
        WHERE health.url = subscriptions_url(subscription.endpoint)
            AND (health.state = 'FROZEN' OR health.next_probe_at > now())
    )
)
"""


def make_lanes(apps: Any, _: Any) -> None:
    lanes = apps.get_model("delivery", "Lane").objects
    lanes.bulk_create(lanes.model(kind=kind, number=0) for kind in ("RETRY", "CALLBACK"))


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0004_retries_and_callbacks"),
        ("subscriptions", "0004_retry_policies"),
    ]

    operations = [
        migrations.RunSQL(URL_OF_ENDPOINT, "DROP FUNCTION subscriptions_url(text)"),
        migrations.RunSQL(
            "CREATE INDEX subscription_url ON subscriptions_subscription (subscriptions_url(endpoint))",
            "DROP INDEX subscription_url",
        ),
        migrations.RunSQL(SENDABLE, "DROP VIEW delivery_sendable"),
        migrations.RunPython(make_lanes, migrations.RunPython.noop),
        migrations.RunSQL(SUBSCRIPTION_LANE, migrations.RunSQL.noop),
    ]
