"""Subscribers that get urgent messages first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0014_common_scripts")]

    operations = [
        migrations.AddField(
            "subscriber",
            "by_priority",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="CONCURRENT: messages with a higher Priority header, 9 to 0, are sent first. SERIAL ignores it.",
            ),
        ),
    ]
