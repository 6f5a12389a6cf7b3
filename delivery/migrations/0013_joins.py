"""Keys of joins under way."""

import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0012_priorities"), ("subscriptions", "0016_joins")]

    operations = [
        migrations.CreateModel(
            "JoinKey",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.BinaryField(max_length=32, unique=True)),
                ("delivery_id", models.BigIntegerField(null=True)),
                (
                    "parts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), db_default=[], default=list, size=None
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={"default_permissions": (), "indexes": [models.Index(fields=["expires_at"], name="join_key_by_time")]},
        ),
    ]
