"""Lists of SHADOW and REDUNDANT deliveries find their rows by an index.

Only deliveries in these states are in it.
"""

from django.db import migrations

from subscriptions.concurrent_indexes import AddPartitionedIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("delivery", "0005_roles_and_permissions")]

    operations = [
        AddPartitionedIndexConcurrently(
            table="delivery_settled",
            name="delivery_shadow_or_redundant",
            definition="(status, id DESC) WHERE status IN ('SHADOW', 'REDUNDANT')",
        )
    ]
