"""Default destinations: subscriptions that get the messages that no other one matches."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0017_shadow")]

    operations = [
        migrations.AddField(
            "subscription",
            "takes_unmatched",
            models.BooleanField(
                default=False,
                help_text="TOPIC: gets only messages that match no other subscription of the event type.",
                verbose_name="default destination",
            ),
        )
    ]
