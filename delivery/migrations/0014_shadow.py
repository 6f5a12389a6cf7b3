"""The status SHADOW of deliveries, and the journal's entry for subscriptions made SHADOW."""

from django.db import migrations, models

from delivery.models.journal import JournalKind
from delivery.states import Status

# The bounds of a partition cannot be changed in place. Attaching reads all settled deliveries once,
# unless a constraint proves their statuses.
PARTITION = """
ALTER TABLE delivery_settled ADD CONSTRAINT delivery_is_settled CHECK (
    status IS NOT NULL AND status IN (
        'DELIVERED', 'REJECTED', '3xxNOTSUPPORTED', 'REDUNDANT', 'FAILED', 'IN_DOUBT', 'EXPIRED', 'CANCELLED', 'DUPLICATE',
        'SHADOW'
    )
);
ALTER TABLE delivery_delivery DETACH PARTITION delivery_settled;
ALTER TABLE delivery_delivery ATTACH PARTITION delivery_settled FOR VALUES IN (
    'DELIVERED', 'REJECTED', '3xxNOTSUPPORTED', 'REDUNDANT', 'FAILED', 'IN_DOUBT', 'EXPIRED', 'CANCELLED', 'DUPLICATE',
    'SHADOW'
);
ALTER TABLE delivery_settled DROP CONSTRAINT delivery_is_settled;
"""


class Migration(migrations.Migration):
    dependencies = [("delivery", "0013_joins"), ("subscriptions", "0017_shadow")]

    operations = [
        migrations.RunSQL(PARTITION, migrations.RunSQL.noop),
        migrations.AlterField(
            "delivery", "status", models.CharField(choices=Status.choices, default=Status.PENDING, max_length=15)
        ),
        migrations.AlterField(
            "earliersettlement", "status", models.CharField(choices=Status.choices, default="", max_length=15)
        ),
        migrations.AddField("historyhour", "shadow", models.BigIntegerField(default=0)),
        migrations.AlterField(
            "journalentry", "kind", models.CharField(choices=JournalKind.choices, max_length=11)
        ),
    ]
