"""Failed sign-ins count by door, and those of a known browser by themselves."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0006_subscriber_application")]

    operations = [
        migrations.AddField(
            "signin",
            "door",
            models.CharField(
                choices=[
                    ("CONSOLE", "the console"),
                    ("TEAMFORGE", "the login of TeamForge's clients"),
                    ("EVENT_QUEUE", "the queues of Event Queue's clients"),
                ],
                db_default="CONSOLE",
                default="CONSOLE",
                max_length=11,
            ),
        ),
        migrations.AddField(
            "signin",
            "browser",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The number of a browser that signed in to the account before.",
                max_length=32,
            ),
        ),
    ]
