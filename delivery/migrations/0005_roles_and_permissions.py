"""The roles Administrators, Support, Auditors and Developers, with their permissions.

Django creates permissions after all migrations; this migration creates those of the roles earlier,
in the same way. An existing role with one of these names keeps its permissions, and gets those of
the role.
"""

from django.db import migrations

OURS = ('delivery', 'subscriptions', 'auth')

TOGGLES = {'subscriptions.toggle_subscription'}
SEES_PAYLOADS = {'delivery.view_payload'}
REPORTS = {'delivery.make_report'}
# Of the publishers whose developer a person is.
OWN = {'delivery.view_ownmessage', 'delivery.view_owndelivery'}
RESCUES = {
    # Resubmit, cancel, resolve IN_DOUBT.
    'delivery.change_delivery',
    'delivery.add_resubmission',
    'delivery.change_resubmission',
    # Retry now, skip, resume.
    'delivery.change_lane',
    # Release a DISABLED or FROZEN URL.
    'delivery.change_urlhealth',
    # Acknowledge, assign, mute and close.
    'delivery.change_incident',
}


def make_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    views = {name for name in made if name.partition('.')[2].startswith('view_')} - SEES_PAYLOADS - OWN
    for role, names in {
        'Administrators': set(made),
        'Support': views | TOGGLES | SEES_PAYLOADS | RESCUES | REPORTS,
        'Auditors': views | SEES_PAYLOADS | REPORTS,
        'Developers': OWN | SEES_PAYLOADS,
    }.items():
        group, _ = apps.get_model('auth', 'Group').objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


def make_permissions(apps, alias):
    """Return `app.codename` -> permission, for all models of this state of the migrations."""
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
        # The reverse is empty: it must not remove permissions that a person has granted since.
        migrations.RunPython(make_roles, migrations.RunPython.noop),
    ]
