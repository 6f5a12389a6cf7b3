"""Functions and triggers of settling, and the earlier settlements that are kept for the archive."""

from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0002_messages_and_deliveries")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text())]
