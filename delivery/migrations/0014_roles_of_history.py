"""What the roles may do with the history: see all of it, and make reports; administrators run and replay."""

from importlib import import_module

from django.db import migrations

make_permissions = import_module('delivery.migrations.0010_roles').make_permissions

PAGES = (
    'pipelinerun',
    'pipelineschedule',
    'finding',
    'historyhour',
    'replay',
    'replayitem',
    'archivechunk',
    'archivefile',
    'earliersettlement',
)
REPORTS = {'delivery.make_report'}


def extend_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    views = {f'delivery.view_{page}' for page in PAGES} | REPORTS
    for role, names in {'Administrators': set(made), 'Support': views, 'Auditors': views}.items():
        group, _ = apps.get_model('auth', 'Group').objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0013_history'),
    ]

    operations = [
        migrations.RunPython(extend_roles, migrations.RunPython.noop),
    ]
