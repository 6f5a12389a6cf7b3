"""Subscribers have an application: a Destination for all subscribers that share it."""

from django.db import migrations, models

from subscriptions.values.names import validate_name


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0005_subscription_descriptions")]

    operations = [
        migrations.AddField(
            "subscriber",
            "application",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="A name that several subscribers share, such as their server's. "
                "A message with it as Destination goes to all of them.",
                max_length=200,
                validators=[validate_name],
            ),
        ),
    ]
