from django.db import migrations

from subscriptions.filters import INTURN_JSON_FUNCTION


class Migration(migrations.Migration):
    """inturn_json reads a body whose numbers grow too long as text as what is no JSON, as filters do."""

    dependencies = [
        ("delivery", "0017_url_health_by_transaction"),
    ]

    operations = [
        migrations.RunSQL(INTURN_JSON_FUNCTION, migrations.RunSQL.noop),
    ]
