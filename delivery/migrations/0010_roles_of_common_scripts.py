"""The roles and common scripts: Administrators edit them, others see them."""

from importlib import import_module

from django.db import migrations

make_permissions = import_module("delivery.migrations.0005_roles").make_permissions


def extend_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    rights = {name for name in made if name.endswith("_commonscript")}
    for role, names in {
        "Administrators": rights,
        "Support": {"subscriptions.view_commonscript"},
        "Auditors": {"subscriptions.view_commonscript"},
    }.items():
        group, _ = apps.get_model("auth", "Group").objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0009_effect_and_compare"),
        ("subscriptions", "0014_common_scripts"),
    ]

    operations = [migrations.RunPython(extend_roles, migrations.RunPython.noop)]
