"""The overview finds the subscriptions that are not ACTIVE by an index."""

from django.db import migrations, models

from subscriptions.concurrent_indexes import ResumableAddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("subscriptions", "0003_changes")]

    operations = [
        ResumableAddIndexConcurrently(
            "subscription",
            models.Index(
                fields=["id"],
                name="subscription_not_active",
                condition=~models.Q(status="ACTIVE"),
            ),
        )
    ]
