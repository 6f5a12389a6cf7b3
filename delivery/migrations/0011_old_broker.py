"""Messages taken over from an old broker: imported keys, and reserved ids."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("delivery", "0010_roles_of_common_scripts")]

    operations = [
        migrations.CreateModel(
            "ImportedKey",
            fields=[
                ("key", models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "MessageReservation",
            fields=[
                ("first_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("until_id", models.BigIntegerField()),
                ("next_id", models.BigIntegerField()),
                ("made_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            next_id__gte=models.F("first_id"), next_id__lte=models.F("until_id")
                        ),
                        name="message_reservation_has_its_ids",
                    )
                ],
            },
        ),
    ]
