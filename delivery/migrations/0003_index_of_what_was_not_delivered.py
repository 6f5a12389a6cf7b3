"""What support looks for and the overview counts, found without reading what was delivered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0002_tables_for_a_queue")]

    operations = [
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "REJECTED",
                            "3xxNOTSUPPORTED",
                            "FAILED",
                            "IN_DOUBT",
                            "EXPIRED",
                            "CANCELLED",
                            "DUPLICATE",
                        ],
                    )
                ),
                fields=["status", "-id"],
                name="delivery_not_delivered",
            ),
        ),
    ]
