"""Messages, deliveries and attempts, partitioned by status and by ranges of messages.

`delivery_waiting` has the open deliveries: it is small, and has two indexes that every delivery is
in. `delivery_settled` has all others, written once. Messages, settled deliveries, logged attempts
and the outputs of scripts have one partition for each range of messages, so retention can drop
whole ranges, and a page of the console reads few of them. Rows outside all ranges are in a default
partition: restored messages whose range was dropped, and messages published before the next range
is created.
"""

from pathlib import Path

from django.db import migrations

from subscriptions.filters import INTURN_JSON_FUNCTION


class Migration(migrations.Migration):
    dependencies = [("delivery", "0001_initial"), ("subscriptions", "0003_changes")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
        # Filters parse bodies with it.
        migrations.RunSQL(INTURN_JSON_FUNCTION),
    ]
