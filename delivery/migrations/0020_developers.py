"""The role Developers: it sees the messages and deliveries of its own publishers, and no others."""

from importlib import import_module

from django.db import migrations

make_permissions = import_module("delivery.migrations.0005_roles").make_permissions

OWN = {"delivery.view_ownmessage", "delivery.view_owndelivery"}


def make_role(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    for role, names in {
        "Administrators": OWN,
        "Developers": OWN | {"delivery.view_payload"},
    }.items():
        group, _ = apps.get_model("auth", "Group").objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


def _proxy(name, of, **options):
    return migrations.CreateModel(
        name,
        fields=[],
        options={"proxy": True, "default_permissions": ("view",), "indexes": [], "constraints": []}
        | options,
        bases=(f"delivery.{of}",),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0018_incidents"),
        ("subscriptions", "0019_developers"),
    ]

    operations = [
        _proxy("OwnMessage", "message", ordering=["-id"], verbose_name="own message"),
        _proxy(
            "OwnDelivery",
            "delivery",
            verbose_name="own delivery",
            verbose_name_plural="own deliveries",
        ),
        migrations.RunPython(make_role, migrations.RunPython.noop),
    ]
