import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

# What blocks a lane has been told by its row alone until now.
FILL = """
INSERT INTO delivery_endpointhealth (subscription_id, lane_id, since, reason, delivery_id, failures, next_try_at)
SELECT subscription.id, lane.id, lane.since, lane.reason, lane.delivery_id, greatest(lane.failures, 1), lane.next_try_at
FROM delivery_lane lane
JOIN subscriptions_subscription subscription ON subscription.id = delivery_subscription_of(lane.delivery_id)
WHERE lane.state IN ('BLOCKED', 'SUSPENDED')
ON CONFLICT DO NOTHING
"""

SUMMARY = """
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
WHERE subscription.mode = 'PUSH'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0024_open_and_settled_apart"),
        ("subscriptions", "0011_changes_seen_by_publishing"),
    ]

    operations = [
        migrations.CreateModel(
            name="EndpointHealth",
            fields=[
                (
                    "subscription",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="subscriptions.subscription",
                    ),
                ),
                ("lane_id", models.BigIntegerField(db_index=True)),
                ("since", models.DateTimeField(db_default=Now())),
                ("reason", models.TextField()),
                ("delivery_id", models.BigIntegerField(help_text="The delivery that failed last.")),
                ("failures", models.PositiveIntegerField(help_text="In a row: the pause follows from it.")),
                ("next_try_at", models.DateTimeField(null=True)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="EndpointSummary",
            fields=[
                (
                    "subscription",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="endpoint_summary",
                        serialize=False,
                        to="subscriptions.subscription",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("UP", "Up"), ("DOWN", "Down"), ("DISABLED", "Disabled"), ("FROZEN", "Frozen")],
                        max_length=8,
                    ),
                ),
                ("url", models.CharField(max_length=2000, null=True)),
                ("since", models.DateTimeField(null=True)),
                ("reason", models.TextField()),
                ("next_try_at", models.DateTimeField(null=True)),
            ],
            options={"default_permissions": (), "managed": False},
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(SUMMARY, "DROP VIEW delivery_endpointsummary"),
    ]
