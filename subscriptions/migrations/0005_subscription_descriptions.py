"""Subscriptions have a description, as event types, publishers and subscribers have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0004_not_active")]

    operations = [
        migrations.AddField(
            "subscription",
            "description",
            models.TextField(blank=True, default="", db_default=""),
        )
    ]
