"""Built-in receivers, their rights, and the journal's entry for messages published by people."""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

import subscriptions.values.names
from delivery.models.journal import JournalKind
from delivery.models.receiver import ReceiverAnswer, SignatureCheck, new_token

make_permissions = import_module("delivery.migrations.0005_roles").make_permissions


def extend_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    rights = {name for name in made if name.endswith("_builtinreceiver")}
    for role, names in {
        "Administrators": rights,
        "Support": {"delivery.view_builtinreceiver"},
        "Auditors": {"delivery.view_builtinreceiver"},
    }.items():
        group, _ = apps.get_model("auth", "Group").objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


class Migration(migrations.Migration):
    dependencies = [("delivery", "0015_replies")]

    operations = [
        migrations.CreateModel(
            "BuiltInReceiver",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        unique=True,
                        validators=[subscriptions.values.names.validate_name],
                    ),
                ),
                ("description", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "token",
                    models.CharField(
                        default=new_token, editable=False, max_length=32, unique=True
                    ),
                ),
                (
                    "answer",
                    models.CharField(
                        choices=ReceiverAnswer.choices,
                        default="OK",
                        help_text="To each request.",
                        max_length=8,
                    ),
                ),
                ("received", models.BigIntegerField(default=0, editable=False)),
            ],
            options={
                "verbose_name": "built-in receiver",
                "ordering": ["name"],
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            "ReceivedRequest",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("method", models.CharField(max_length=20)),
                ("headers", models.JSONField()),
                ("body", models.BinaryField()),
                ("size", models.BigIntegerField()),
                ("signature", models.CharField(choices=SignatureCheck.choices, max_length=8)),
                ("answer", models.CharField(choices=ReceiverAnswer.choices, max_length=8)),
                ("message_id", models.BigIntegerField(null=True)),
                (
                    "receiver",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="delivery.builtinreceiver",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["receiver", "-id"], name="request_of_receiver"),
                    models.Index(fields=["at"], name="request_by_time"),
                ],
            },
        ),
        migrations.AlterField(
            "journalentry",
            "kind",
            models.CharField(choices=JournalKind.choices, max_length=11),
        ),
        migrations.RunPython(extend_roles, migrations.RunPython.noop),
    ]
