"""The roles: what Administrators, Support and Auditors may do.

Permissions are otherwise made after all migrations; those of which a role consists are made here, as they would be
then. A role that somebody made under one of these names keeps what it has, and is given what belongs to it.
"""

from django.db import migrations

OURS = ('delivery', 'subscriptions', 'auth')

TOGGLES = {'subscriptions.toggle_subscription'}
SEES_PAYLOADS = {'delivery.view_payload'}
REPORTS = {'delivery.make_report'}
RESCUES = {
    # Resubmit, cancel, decide what is in doubt.
    'delivery.change_delivery',
    'delivery.add_resubmission',
    'delivery.change_resubmission',
    # Retry now, skip, resume.
    'delivery.change_lane',
    # Release a URL that is left alone.
    'delivery.change_urlhealth',
}


def make_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    views = {name for name in made if name.partition('.')[2].startswith('view_')} - SEES_PAYLOADS
    for role, names in {
        'Administrators': set(made),
        'Support': views | TOGGLES | SEES_PAYLOADS | RESCUES | REPORTS,
        'Auditors': views | SEES_PAYLOADS | REPORTS,
    }.items():
        group, _ = apps.get_model('auth', 'Group').objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


def make_permissions(apps, alias):
    """Return `app.codename` -> permission, of all models that there are by now."""
    types = apps.get_model('contenttypes', 'ContentType').objects.using(alias)
    permissions = apps.get_model('auth', 'Permission').objects.using(alias)
    made = {}
    for label in OURS:
        for model in apps.get_app_config(label).get_models():
            content_type, _ = types.get_or_create(app_label=label, model=model._meta.model_name)
            for codename, name in permissions_of(model._meta):
                made[f'{label}.{codename}'], _ = permissions.get_or_create(
                    content_type=content_type, codename=codename, defaults={'name': name}
                )
    return made


def permissions_of(options):
    standard = [
        (f'{action}_{options.model_name}', f'Can {action} {options.verbose_name_raw}')
        for action in options.default_permissions
    ]
    return [*standard, *options.permissions]


class Migration(migrations.Migration):
    dependencies = [
        ('delivery', '0004_lanes_and_traffic'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        # What a person has given to a role since is not taken away again.
        migrations.RunPython(make_roles, migrations.RunPython.noop),
    ]
