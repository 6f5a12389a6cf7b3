"""Cancelling the backlog of one subscription is a bulk job, and nothing of the subscription is sent meanwhile."""

from django.db import migrations, models

# What senders may send: an ACTIVE subscription whose backlog is not being cancelled, and whose URL is not disabled by the
# circuit breaker, unless a probe is due. `since` of its parts and the clock move it, so it is asked anew with each reading.
SENDABLE = """
CREATE OR REPLACE VIEW delivery_sendable AS
SELECT subscription.id, subscription.subscriber_id, subscription.event_type_id
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.status = 'ACTIVE' AND subscription.cancellation_id IS NULL AND NOT (
    policy.breaks_circuit AND EXISTS (
        SELECT
        FROM delivery_urlhealth health
        WHERE health.url = subscriptions_url(subscription.endpoint)
            AND (health.state = 'FROZEN' OR health.next_probe_at > now())
    )
)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0019_clock_of_the_archive"),
        ("subscriptions", "0009_backlog_cancellations"),
    ]

    operations = [
        migrations.AddField(
            model_name="resubmission",
            name="is_backlog",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunSQL(SENDABLE, migrations.RunSQL.noop),
    ]
