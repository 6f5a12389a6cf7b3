"""Messages, deliveries and attempts: open and settled deliveries apart, and everything that grows in ranges of messages.

`delivery_waiting` has the open deliveries: small, and with two indexes that every delivery is in. `delivery_settled` has all
others, written once. Messages, settled deliveries and logged attempts have one partition for each range of messages, so
retention can drop whole ranges, and a page of the console reads few of them. Rows of no range are in a default
partition: restored messages whose range was dropped, and what is published before the next range is made.
"""

from pathlib import Path

from django.db import migrations

from subscriptions.filters import INTURN_JSON_FUNCTION


class Migration(migrations.Migration):
    dependencies = [("delivery", "0001_initial"), ("subscriptions", "0003_changes")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
        # Filters read bodies by it.
        migrations.RunSQL(INTURN_JSON_FUNCTION),
    ]
