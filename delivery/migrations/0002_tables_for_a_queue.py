"""What models cannot say: how the tables are kept, and the function that filters lean on."""

from django.db import migrations

from subscriptions.filters import INTURN_JSON_FUNCTION

# Rows of these change within moments. Room on each page lets updates stay on it, and
# vacuum comes early, by number and not by share, so that the partial indexes stay small.
STORAGE = """
ALTER TABLE delivery_delivery SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000,
    autovacuum_analyze_scale_factor = 0.0, autovacuum_analyze_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0.0, autovacuum_vacuum_insert_threshold = 50000
);
ALTER TABLE delivery_lane SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000
);
"""


class Migration(migrations.Migration):
    dependencies = [("delivery", "0001_initial")]

    operations = [
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
        migrations.RunSQL(INTURN_JSON_FUNCTION, "DROP FUNCTION inturn_json(bytea)"),
    ]
