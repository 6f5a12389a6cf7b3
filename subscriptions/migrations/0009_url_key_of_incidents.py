"""Messages about incidents name a URL by a key, too: their samples say so."""

from django.db import migrations

FORWARD = """
UPDATE subscriptions_eventtype SET sample = sample || '{"url_key": null}'
WHERE name LIKE 'Inturn.Incident.%' AND sample ? 'url'
"""
BACKWARD = """
UPDATE subscriptions_eventtype SET sample = sample - 'url_key'
WHERE name LIKE 'Inturn.Incident.%' AND sample ? 'url'
"""


class Migration(migrations.Migration):
    dependencies = [("subscriptions", "0008_masked_url")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
