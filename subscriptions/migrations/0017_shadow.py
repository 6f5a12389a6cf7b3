"""The status SHADOW of subscriptions: messages match and are recorded, and nothing is sent."""

from django.db import migrations, models

STANDINGS = """
CREATE OR REPLACE VIEW subscriptions_standing AS
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
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
"""
STATUSES = [("ACTIVE", "Active"), ("HELD", "Held"), ("SHADOW", "Shadow"), ("INACTIVE", "Inactive")]


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0016_joins")]

    operations = [
        migrations.AlterField(
            "subscription", "status", models.CharField(choices=STATUSES, default="ACTIVE", max_length=8)
        ),
        migrations.AddIndex(
            "subscription",
            models.Index(fields=["id"], name="subscription_shadow", condition=models.Q(status="SHADOW")),
        ),
        migrations.RunSQL(STANDINGS, migrations.RunSQL.noop),
    ]
