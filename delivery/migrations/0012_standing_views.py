"""The views that say how subscriptions, subscribers, mailboxes and queue groups stand."""

from pathlib import Path

from django.db import migrations

VIEWS = [
    "delivery_stoppedlane",
    "delivery_subscriptionstop",
    "delivery_subscriptionstanding",
]


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0011_masked_journal"),
        ("subscriptions", "0010_masked_log"),
    ]

    operations = [
        migrations.RunSQL(
            Path(__file__).with_suffix(".sql").read_text(),
            "".join(f"DROP VIEW {view};" for view in reversed(VIEWS)),
        ),
    ]
