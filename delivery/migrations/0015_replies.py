"""Replies to delivered messages."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("delivery", "0014_shadow")]

    operations = [
        migrations.CreateModel(
            "Reply",
            fields=[
                ("delivery_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("queue_group", models.SmallIntegerField(null=True)),
                ("deliveries", models.IntegerField(db_default=0, default=0)),
                ("digest", models.BinaryField(max_length=32)),
                ("replied_at", models.DateTimeField(db_default=Now())),
                (
                    "message",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="replies",
                        to="delivery.message",
                    ),
                ),
                (
                    "reply",
                    models.OneToOneField(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="replied",
                        to="delivery.message",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "replies",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "queue_group"), name="reply_of_a_group"
                    )
                ],
            },
        ),
    ]
