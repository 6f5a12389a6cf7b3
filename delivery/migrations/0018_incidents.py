"""Incidents with their rules and rights, and the event types that announce them."""

from importlib import import_module

import delivery.models.moment
import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

make_permissions = import_module("delivery.migrations.0005_roles").make_permissions

# Kind, seconds until it opens, seconds until it closes, bound, on.
RULES = [
    ("LANE", 300, 60, None, True),
    ("ENDPOINT", 300, 60, None, True),
    ("URL", 0, 60, None, True),
    ("RETRYING", 300, 60, 20, True),
    ("FAILURES", 0, 600, 1, True),
    ("IN_DOUBT", 0, 10, 120, True),
    ("OLDEST", 300, 60, 600, True),
    ("BACKLOG", 60, 300, 100_000, True),
    ("VERIFY", 0, 0, None, True),
    ("PIPELINE", 0, 0, 2, True),
    ("DISK", 60, 300, 10, True),
    ("DATABASE", 60, 300, 100, False),
]
SAMPLE = {
    "incident": 7,
    "change": "opened",
    "by": None,
    "kind": "LANE",
    "state": "OPEN",
    "severity": "WARNING",
    "subject": "crm is BLOCKED",
    "cause": "500: Internal Server Error",
    "lane": "crm",
    "subscriber": "crm",
    "subscription": "created",
    "url": None,
    "message": "msg_17",
    "delivery": 17825792,
    "count": 0,
    "waiting": 1000,
    "since": "2026-11-21T10:00:00Z",
    "opened_at": "2026-11-21T10:05:00Z",
    "closed_at": None,
    "lasted_seconds": None,
    "next_try_at": "2026-11-21T10:06:00Z",
    "acknowledged_by": None,
    "assignee": None,
    "link": "https://inturn.example.com/admin/delivery/incident/7/",
}
ANNOUNCING = {
    "Inturn.Incident.Opened": "Published by Inturn when something goes wrong: once for each cause.",
    "Inturn.Incident.Changed": "Published by Inturn when an open incident gets worse, or a person acts on it.",
    "Inturn.Incident.Closed": "Published by Inturn when the cause of an incident is gone.",
}


def add_rules(apps, schema_editor):
    rules = apps.get_model("delivery", "IncidentRule").objects.using(schema_editor.connection.alias)
    for kind, after_seconds, quiet_seconds, bound, is_on in RULES:
        rules.get_or_create(
            kind=kind,
            defaults={
                "after_seconds": after_seconds,
                "quiet_seconds": quiet_seconds,
                "bound": bound,
                "is_on": is_on,
            },
        )


def add_event_types(apps, schema_editor):
    alias = schema_editor.connection.alias
    event_types = apps.get_model("subscriptions", "EventType").objects.using(alias)
    for name, description in ANNOUNCING.items():
        event_types.get_or_create(
            name=name,
            defaults={
                "kind": "TOPIC",
                "content_type": "application/json",
                "description": description,
                "sample": SAMPLE,
            },
        )


def extend_roles(apps, schema_editor):
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    views = {"delivery.view_incident", "delivery.view_incidentrule"}
    acts = views | {"delivery.change_incident"}
    for role, names in {
        "Administrators": acts | {"delivery.change_incidentrule"},
        "Support": acts,
        "Auditors": views,
    }.items():
        group, _ = apps.get_model("auth", "Group").objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0017_ended_reason'),
        ('subscriptions', '0018_default_destinations'),
    ]

    operations = [
        migrations.CreateModel(
            name='FailureSign',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery_id', models.BigIntegerField()),
                ('subscription_id', models.BigIntegerField()),
                ('cause', models.CharField(max_length=20)),
                ('at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='IncidentRule',
            fields=[
                ('kind', models.CharField(choices=[('LANE', 'lane stopped'), ('ENDPOINT', 'endpoint down'), ('URL', 'URL disabled or frozen'), ('RETRYING', 'deliveries retried'), ('FAILURES', 'failed deliveries'), ('IN_DOUBT', 'deliveries in doubt'), ('OLDEST', 'slow lane'), ('BACKLOG', 'large backlog'), ('VERIFY', 'history broken'), ('PIPELINE', 'pipeline failed'), ('DISK', 'disk nearly full'), ('DATABASE', 'database large')], max_length=8, primary_key=True, serialize=False)),
                ('is_on', models.BooleanField(default=True, verbose_name='on')),
                ('after_seconds', models.PositiveIntegerField(help_text='How long the cause must exist before it is announced.', verbose_name='opens after (seconds)')),
                ('quiet_seconds', models.PositiveIntegerField(help_text='How long the cause must be absent. What returns earlier is the same incident.', verbose_name='closes after (seconds)')),
                ('bound', models.FloatField(blank=True, null=True)),
                ('mail_to', django.contrib.postgres.fields.ArrayField(base_field=models.EmailField(max_length=254), blank=True, default=list, size=None, verbose_name='mail to')),
                ('chat_urls', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=2000), blank=True, default=list, size=None, verbose_name='chat webhooks')),
            ],
            options={
                'verbose_name': 'incident rule',
                'ordering': ['kind'],
                'default_permissions': ('view', 'change'),
            },
        ),
        migrations.CreateModel(
            name='Incident',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=300)),
                ('kind', models.CharField(choices=[('LANE', 'lane stopped'), ('ENDPOINT', 'endpoint down'), ('URL', 'URL disabled or frozen'), ('RETRYING', 'deliveries retried'), ('FAILURES', 'failed deliveries'), ('IN_DOUBT', 'deliveries in doubt'), ('OLDEST', 'slow lane'), ('BACKLOG', 'large backlog'), ('VERIFY', 'history broken'), ('PIPELINE', 'pipeline failed'), ('DISK', 'disk nearly full'), ('DATABASE', 'database large')], max_length=8)),
                ('state', models.CharField(choices=[('WATCHED', 'Watched'), ('OPEN', 'Open'), ('CLOSED', 'Closed')], db_default='WATCHED', default='WATCHED', max_length=7)),
                ('severity', models.CharField(choices=[('WARNING', 'Warning'), ('CRITICAL', 'Critical')], db_default='WARNING', default='WARNING', max_length=8)),
                ('lane_id', models.BigIntegerField(null=True)),
                ('subscription_id', models.BigIntegerField(null=True)),
                ('delivery_id', models.BigIntegerField(help_text='The head, or the last failure.', null=True)),
                ('url', models.CharField(blank=True, db_default='', default='', max_length=2000)),
                ('subject', models.CharField(blank=True, db_default='', default='', max_length=500)),
                ('cause', models.TextField(blank=True, db_default='', default='')),
                ('count', models.BigIntegerField(db_default=0, default=0, help_text='FAILURES, IN_DOUBT: of deliveries.')),
                ('waiting', models.BigIntegerField(null=True)),
                ('first_at', models.DateTimeField()),
                ('absent_since', models.DateTimeField(null=True)),
                ('opened_at', models.DateTimeField(null=True)),
                ('closed_at', models.DateTimeField(null=True)),
                ('closed_by', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('is_changed', models.BooleanField(db_default=False, default=False)),
                ('announced_at', models.DateTimeField(null=True)),
                ('acknowledged_at', models.DateTimeField(null=True)),
                ('acknowledged_by', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('assignee', models.CharField(blank=True, db_default='', default='', max_length=200)),
                ('muted_until', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-id'],
                'default_permissions': ('view', 'change'),
                'indexes': [models.Index(fields=['state', '-id'], name='incident_by_state'), models.Index(fields=['key', '-id'], name='incident_by_key'), models.Index(condition=models.Q(('state', 'CLOSED')), fields=['closed_at'], name='incident_ended')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'CLOSED'), _negated=True), fields=('key',), name='incident_of_a_cause'), models.CheckConstraint(condition=models.Q(('state', 'CLOSED'), ('closed_at__isnull', True), _connector='XOR'), name='incident_closed'), models.CheckConstraint(condition=models.Q(('state', 'WATCHED'), ('opened_at__isnull', False), _connector='XOR'), name='incident_opened')],
            },
        ),
        migrations.CreateModel(
            name='IncidentDelivery',
            fields=[
                ('pk', models.CompositePrimaryKey('incident', 'delivery_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('delivery_id', models.BigIntegerField()),
                ('incident', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='failed', to='delivery.incident')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='IncidentAlert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(choices=[('MAIL', 'mail'), ('CHAT', 'chat')], max_length=4)),
                ('recipient', models.CharField(max_length=2000)),
                ('subject', models.CharField(max_length=500)),
                ('text', models.TextField()),
                ('made_at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
                ('next_at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
                ('expires_at', models.DateTimeField()),
                ('tries', models.PositiveIntegerField(default=0)),
                ('sent_at', models.DateTimeField(null=True)),
                ('error', models.TextField(blank=True, default='')),
                ('incident', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='delivery.incident')),
            ],
            options={
                'ordering': ['id'],
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('sent_at__isnull', True)), fields=['channel', 'next_at'], name='alert_unsent')],
            },
        ),
        migrations.RunPython(add_rules, migrations.RunPython.noop),
        migrations.RunPython(add_event_types, migrations.RunPython.noop),
        migrations.RunPython(extend_roles, migrations.RunPython.noop),
    ]
