"""The tables, without the partitioned ones of messages and deliveries, which Django cannot create.

The next migration creates those.
"""

import delivery.models.moment
import delivery.models.receiver
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import re
from pathlib import Path

from django.db import migrations, models


def known(operation):
    """Return the operation for Django's state only: SQL creates the table."""
    return migrations.SeparateDatabaseAndState(state_operations=[operation])


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('subscriptions', '0001_initial'),
    ]

    operations = [
        # The default of some columns.
        migrations.RunSQL(Path(__file__).with_suffix('.sql').read_text()),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('pk', models.CompositePrimaryKey('delivery', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('number', models.IntegerField()),
                ('started_at', models.DateTimeField()),
                ('duration_ms', models.IntegerField(null=True)),
                ('outcome', models.CharField(choices=[('SUCCESS', '2xx'), ('REDIRECT', '3xx'), ('CLIENT_ERROR', '4xx'), ('RATE_LIMITED', '429'), ('SERVER_ERROR', '5xx'), ('UNAVAILABLE', '503'), ('TIMEOUT', 'timed out'), ('UNREACHABLE', 'unreachable'), ('TLS', 'TLS failed'), ('REFUSED_ADDRESS', 'address not allowed'), ('LOST', 'sender died after sending'), ('UNSENDABLE', 'could not be sent: a fault on our side'), ('SCRIPT', 'script'), ('ACKNOWLEDGED', 'acknowledged'), ('RELEASED', 'given back'), ('UNACKNOWLEDGED', 'not acknowledged in time'), ('DECLINED', 'rejected by the subscriber')], max_length=16)),
                ('status_code', models.SmallIntegerField(null=True)),
                ('error', models.TextField(blank=True, default='')),
                ('excerpt', models.BinaryField(default=b'')),
            ],
            options={
                'ordering': ['delivery', 'number'],
                'managed': False,
            },
        ),
        migrations.CreateModel(
            name='EndpointSummary',
            fields=[
                ('subscription', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='endpoint_summary', serialize=False, to='subscriptions.subscription')),
                ('state', models.CharField(choices=[('UP', 'Up'), ('DOWN', 'Down'), ('DISABLED', 'Disabled'), ('FROZEN', 'Frozen')], max_length=8)),
                ('url', models.CharField(max_length=2000, null=True)),
                ('since', models.DateTimeField(null=True)),
                ('reason', models.TextField()),
                ('next_try_at', models.DateTimeField(null=True)),
            ],
            options={
                'managed': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='MessageRange',
            fields=[
                ('first_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('until_id', models.BigIntegerField()),
                ('made_at', models.DateTimeField()),
            ],
            options={
                'managed': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='BuiltInReceiver',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('token', models.CharField(default=delivery.models.receiver.new_token, editable=False, max_length=32, unique=True)),
                ('answer', models.CharField(choices=[('OK', '204: delivered'), ('GONE', '410: rejected'), ('TOO_MANY', '429, Retry-After: 10'), ('ERROR', '500: server error'), ('SLOW', '204 after 5 s'), ('HANG', 'no answer for 2 min'), ('CLOSE', 'connection closed')], default='OK', help_text='To each request.', max_length=8)),
                ('received', models.BigIntegerField(default=0, editable=False)),
            ],
            options={
                'verbose_name': 'built-in receiver',
                'ordering': ['name'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Callback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('queue_group', models.SmallIntegerField(help_text='The group of the message, counted from 0.')),
                ('url', models.CharField(help_text='Where the publisher wants the answer.', max_length=2000)),
                ('hop', models.PositiveSmallIntegerField(default=1, help_text='How many callbacks led to this one, itself included.')),
                ('expires_at', models.DateTimeField()),
                ('answered_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        known(migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('queue_group', models.SmallIntegerField(help_text='Of a QUEUE message: the group it belongs to, counted from 0.', null=True)),
                ('status', models.CharField(choices=[('PENDING', 'Pending'), ('IN_FLIGHT', 'In Flight'), ('DELIVERED', 'Delivered'), ('REJECTED', 'Rejected'), ('3xxNOTSUPPORTED', '3xxNOTSUPPORTED'), ('REDUNDANT', 'Redundant'), ('FAILED', 'Failed'), ('IN_DOUBT', 'In Doubt'), ('EXPIRED', 'Expired'), ('CANCELLED', 'Cancelled'), ('DUPLICATE', 'Duplicate'), ('SHADOW', 'Shadow')], default='PENDING', max_length=15)),
                ('attempts', models.IntegerField(default=0)),
                ('attempts_before', models.IntegerField(db_default=0, default=0)),
                ('settled_before', models.IntegerField(db_default=0, default=0)),
                ('skipped', models.BooleanField(default=False)),
                ('redelivery', models.CharField(blank=True, choices=[('', '–'), ('in-doubt', 'a sender died after sending it'), ('resubmitted', 'a person sent it again')], default='', max_length=12)),
                ('reason', models.TextField(blank=True, default='')),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('server_started_at', models.DateTimeField(null=True)),
                ('settled_at', models.DateTimeField(null=True)),
                ('leased_at', models.DateTimeField(null=True)),
                ('lease_token', models.UUIDField(null=True)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('receive_count', models.IntegerField(default=0)),
                ('started_at', models.DateTimeField(help_text='Of the attempt that delivered it.', null=True)),
                ('duration_ms', models.IntegerField(null=True)),
                ('status_code', models.SmallIntegerField(null=True)),
                ('priority', models.SmallIntegerField(help_text='While it waits: the priority of its message, if its subscriber sends by priority.', null=True)),
                ('callback', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.callback')),
                ('subscription', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='subscriptions.subscription')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ['-id'],
            },
        )),
        migrations.CreateModel(
            name='EndpointHealth',
            fields=[
                ('subscription', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='subscriptions.subscription')),
                ('lane_id', models.BigIntegerField(db_index=True)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reason', models.TextField()),
                ('delivery_id', models.BigIntegerField(help_text='The delivery that failed last.')),
                ('failures', models.PositiveIntegerField(help_text='In a row: the pause follows from it.')),
                ('next_try_at', models.DateTimeField(null=True)),
            ],
            options={
                'default_permissions': (),
            },
        ),
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
            name='ImportedKey',
            fields=[
                ('key', models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ('digest', models.BinaryField(max_length=32)),
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
            name='TrafficMinute',
            fields=[
                ('at', models.DateTimeField(primary_key=True, serialize=False)),
                ('accepted', models.IntegerField(default=0)),
                ('delivered', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
            ],
            options={
                'ordering': ['at'],
            },
        ),
        migrations.CreateModel(
            name='ArchiveChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('EXPORT', 'Export'), ('COMPACTION', 'Compaction')], default='EXPORT', max_length=10)),
                ('state', models.CharField(choices=[('WRITING', 'Writing'), ('MOVING', 'Moving'), ('DONE', 'Done')], default='WRITING', max_length=7)),
                ('run_id', models.BigIntegerField(help_text='The pipeline run that wrote it.')),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('snapshot', models.TextField(blank=True, default='', help_text="PostgreSQL's pg_snapshot, once it is verified.")),
                ('counts', models.JSONField(default=dict, help_text='Rows by table.')),
                ('is_rolled_up', models.BooleanField(db_default=False, default=False)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('kind', 'EXPORT'), ('state', 'DONE')), fields=['-since'], name='chunk_of_a_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('state', 'DONE'), _negated=True), ('ended_at__isnull', False), _connector='XOR'), name='chunk_ended'), models.CheckConstraint(condition=models.Q(('since__lte', models.F('until'))), name='chunk_is_a_piece_of_time'), models.UniqueConstraint(condition=models.Q(('state', 'DONE'), _negated=True), fields=('kind',), name='chunk_one_under_way_of_a_kind')],
            },
        ),
        migrations.CreateModel(
            name='Archived',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('until', models.DateTimeField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='archived_is_one_row')],
            },
        ),
        known(migrations.CreateModel(
            name='ScriptOutput',
            fields=[
                ('delivery', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='script_output', serialize=False, to='delivery.delivery')),
                ('script_version', models.IntegerField()),
                ('body', models.BinaryField(null=True)),
                ('content_type', models.CharField(blank=True, default='', max_length=255)),
                ('headers', models.JSONField(default=dict)),
                ('path', models.TextField(blank=True, default='')),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'default_permissions': (),
            },
        )),
        migrations.CreateModel(
            name='OwnDelivery',
            fields=[
            ],
            options={
                'verbose_name': 'own delivery',
                'verbose_name_plural': 'own deliveries',
                'proxy': True,
                'default_permissions': ('view',),
                'indexes': [],
                'constraints': [],
            },
            bases=('delivery.delivery',),
        ),
        migrations.CreateModel(
            name='EarlierSettlement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery_id', models.BigIntegerField()),
                ('settled_at', models.DateTimeField()),
                ('status', models.CharField(choices=[('PENDING', 'Pending'), ('IN_FLIGHT', 'In Flight'), ('DELIVERED', 'Delivered'), ('REJECTED', 'Rejected'), ('3xxNOTSUPPORTED', '3xxNOTSUPPORTED'), ('REDUNDANT', 'Redundant'), ('FAILED', 'Failed'), ('IN_DOUBT', 'In Doubt'), ('EXPIRED', 'Expired'), ('CANCELLED', 'Cancelled'), ('DUPLICATE', 'Duplicate'), ('SHADOW', 'Shadow')], default='', max_length=15)),
                ('attempts', models.IntegerField()),
                ('attempts_before', models.IntegerField(default=0)),
                ('settled_before', models.IntegerField(default=0)),
                ('redelivery', models.CharField(blank=True, default='', max_length=12)),
                ('reason', models.TextField(blank=True, default='')),
                ('receive_count', models.IntegerField(default=0)),
                ('message_id', models.BigIntegerField(default=0)),
                ('subscription_id', models.BigIntegerField(default=0)),
                ('queue_group', models.SmallIntegerField(null=True)),
                ('callback_id', models.BigIntegerField(null=True)),
                ('replay_id', models.BigIntegerField(null=True)),
                ('is_amended', models.BooleanField(default=True)),
                ('ended_by', models.TextField(help_text="PostgreSQL's xid8.")),
                ('ended_at', models.DateTimeField()),
                ('ended_reason', models.TextField(blank=True, db_default='', default='', help_text='Who ended it, and by which job, as in `reason`; empty in older rows.')),
            ],
            options={
                'indexes': [models.Index(fields=['delivery_id'], name='earlier_settlement_of'), models.Index(condition=models.Q(('is_amended', False)), fields=['settled_at'], name='earlier_settlement_at')],
            },
        ),
        migrations.CreateModel(
            name='FailureNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery_id', models.BigIntegerField()),
                ('number', models.IntegerField(help_text='The attempt that was the last; 0: none was recorded.')),
                ('due_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.UniqueConstraint(fields=('delivery_id', 'number'), name='failure_notice_of_an_attempt')],
            },
        ),
        migrations.CreateModel(
            name='HistoryHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField()),
                ('subscriber', models.CharField(max_length=200)),
                ('subscription_id', models.BigIntegerField()),
                ('subscription', models.CharField(max_length=200)),
                ('event_type', models.CharField(max_length=200)),
                ('endpoint', models.CharField(blank=True, default='', max_length=2000)),
                ('delivered', models.BigIntegerField(default=0)),
                ('rejected', models.BigIntegerField(default=0)),
                ('unsupported', models.BigIntegerField(default=0)),
                ('redundant', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0)),
                ('in_doubt', models.BigIntegerField(default=0)),
                ('expired', models.BigIntegerField(default=0)),
                ('cancelled', models.BigIntegerField(default=0)),
                ('duplicate', models.BigIntegerField(default=0)),
                ('shadow', models.BigIntegerField(default=0)),
                ('attempts', models.BigIntegerField(default=0)),
                ('failed_attempts', models.BigIntegerField(default=0)),
                ('retried', models.BigIntegerField(default=0)),
                ('bytes', models.BigIntegerField(default=0)),
                ('blocked_seconds', models.FloatField(default=0)),
                ('latency_p50', models.FloatField(null=True)),
                ('latency_p95', models.FloatField(null=True)),
                ('latency_p99', models.FloatField(null=True)),
                ('latency_max', models.FloatField(null=True)),
                ('response_p50', models.FloatField(null=True)),
                ('response_p95', models.FloatField(null=True)),
                ('response_p99', models.FloatField(null=True)),
                ('response_max', models.FloatField(null=True)),
            ],
            options={
                'verbose_name_plural': 'history',
                'ordering': ['hour', 'subscription_id'],
                'indexes': [models.Index(fields=['subscription_id', 'hour'], name='history_hour_of'), models.Index(fields=['hour'], include=('subscription_id', 'subscriber', 'event_type', 'delivered', 'rejected', 'unsupported', 'failed', 'expired', 'attempts', 'retried', 'bytes', 'blocked_seconds', 'latency_p50', 'latency_p95', 'latency_p99', 'response_p50', 'response_p95', 'response_p99'), name='history_hour_read')],
                'constraints': [models.UniqueConstraint(fields=('hour', 'subscription_id', 'subscriber', 'event_type'), name='history_hour_once')],
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
            name='JoinKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.BinaryField(max_length=32, unique=True)),
                ('delivery_id', models.BigIntegerField(null=True)),
                ('parts', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), db_default=[], default=list, size=None)),
                ('expires_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'default_permissions': (),
                'indexes': [models.Index(fields=['expires_at'], name='join_key_by_time')],
            },
        ),
        migrations.CreateModel(
            name='JournalEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=delivery.models.moment.ArchiveClock())),
                ('kind', models.CharField(choices=[('UNMATCHED', 'a message without a subscription'), ('BLOCKED', 'a lane is blocked'), ('RESUMED', 'a lane resumed'), ('IN_DOUBT', 'a delivery may have been sent'), ('RETRIED', 'a person requested a retry'), ('SKIPPED', 'a person skipped a message'), ('CANCELLED', 'a person cancelled deliveries'), ('RESUBMITTED', 'a person sent deliveries again'), ('ACTIVATED', 'made ACTIVE: a subscription, a subscriber, or all sending'), ('DEACTIVATED', 'made INACTIVE: a subscription or a subscriber'), ('HELD', 'HELD: a subscription, a subscriber, or all sending'), ('SHADOW', 'made SHADOW: a subscription'), ('FAILED', "a delivery's attempts are used up"), ('SUSPENDED', 'a lane is suspended'), ('DISABLED', 'a URL is disabled'), ('FROZEN', 'a URL is frozen'), ('ENABLED', 'a URL is enabled again'), ('RESOLVED', 'a person decided a delivery in doubt'), ('DUPLICATE', 'a duplicate message'), ('AMBIGUOUS', 'several subscriptions matched a SYNC message'), ('CALLBACK', 'an endpoint answered by callback'), ('EXPIRED', 'expired deliveries'), ('REPLAYED', 'a person replayed messages'), ('TESTED', 'a person sent a test message'), ('PUBLISHED', 'a person published a message in the console'), ('ERRORS_TO', 'the named recipient of a failure does not exist'), ('IMPORTED', 'messages of an old broker were imported'), ('REMOVED', 'retention removed messages'), ('INCIDENT', 'an incident was opened, changed or closed')], max_length=11)),
                ('text', models.TextField()),
                ('actor', models.CharField(blank=True, default='', help_text='Empty: Inturn itself.', max_length=200)),
                ('message_id', models.BigIntegerField(null=True)),
                ('delivery_id', models.BigIntegerField(null=True)),
                ('subscription_id', models.BigIntegerField(null=True)),
                ('lane_id', models.BigIntegerField(null=True)),
            ],
            options={
                'verbose_name_plural': 'journal',
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['kind', '-id'], name='journal_by_kind'), models.Index(condition=models.Q(('message_id__isnull', False)), fields=['message_id'], name='journal_of_message'), models.Index(condition=models.Q(('delivery_id__isnull', False)), fields=['delivery_id'], name='journal_of_delivery'), models.Index(condition=models.Q(('subscription_id__isnull', False)), fields=['subscription_id', '-id'], name='journal_of_subscription'), models.Index(condition=models.Q(('lane_id__isnull', False)), fields=['lane_id', '-id'], name='journal_of_lane'), models.Index(fields=['at'], name='journal_by_time')],
            },
        ),
        migrations.CreateModel(
            name='Lane',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('TOPIC', "one subscriber's"), ('QUEUE', 'queue sender'), ('RETRY', 'retries'), ('CALLBACK', 'callbacks')], max_length=8)),
                ('number', models.PositiveSmallIntegerField(default=0)),
                ('state', models.CharField(choices=[('IDLE', 'Idle'), ('SENDING', 'Sending'), ('BLOCKED', 'Blocked'), ('SUSPENDED', 'Suspended')], default='IDLE', max_length=9)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('reason', models.TextField(blank=True, default='')),
                ('delivery_id', models.BigIntegerField(help_text='The delivery that stops it.', null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('next_try_at', models.DateTimeField(null=True)),
                ('run_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('run_attempts', django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), default=list, size=None)),
                ('run_is_concurrent', models.BooleanField(db_default=False, default=False)),
                ('catch_up_rate', models.FloatField(help_text='Deliveries per second, at most, while it catches up on held deliveries.', null=True)),
                ('catch_up_to', models.BigIntegerField(help_text='The last delivery that may have been held; null: it does not catch up.', null=True)),
                ('subscriber', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='lane', to='subscriptions.subscriber')),
            ],
        ),
        known(migrations.AddField(
            model_name='delivery',
            name='lane',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.lane'),
        )),
        known(migrations.CreateModel(
            name='LoggedAttempt',
            fields=[
                ('pk', models.CompositePrimaryKey('delivery', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('number', models.IntegerField()),
                ('started_at', models.DateTimeField()),
                ('duration_ms', models.IntegerField(null=True)),
                ('outcome', models.CharField(choices=[('SUCCESS', '2xx'), ('REDIRECT', '3xx'), ('CLIENT_ERROR', '4xx'), ('RATE_LIMITED', '429'), ('SERVER_ERROR', '5xx'), ('UNAVAILABLE', '503'), ('TIMEOUT', 'timed out'), ('UNREACHABLE', 'unreachable'), ('TLS', 'TLS failed'), ('REFUSED_ADDRESS', 'address not allowed'), ('LOST', 'sender died after sending'), ('UNSENDABLE', 'could not be sent: a fault on our side'), ('SCRIPT', 'script'), ('ACKNOWLEDGED', 'acknowledged'), ('RELEASED', 'given back'), ('UNACKNOWLEDGED', 'not acknowledged in time'), ('DECLINED', 'rejected by the subscriber')], max_length=16)),
                ('status_code', models.SmallIntegerField(null=True)),
                ('error', models.TextField(blank=True, default='')),
                ('excerpt', models.BinaryField(default=b'')),
                ('delivery', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='delivery.delivery')),
            ],
            options={
                'default_permissions': (),
            },
        )),
        migrations.CreateModel(
            name='MailboxRate',
            fields=[
                ('pk', models.CompositePrimaryKey('subscriber', 'at', 'slot', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('slot', models.SmallIntegerField()),
                ('received', models.IntegerField(default=0)),
                ('acknowledged', models.IntegerField(default=0)),
                ('subscriber', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='subscriptions.subscriber')),
            ],
        ),
        known(migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('headers', models.JSONField(default=dict)),
                ('content_type', models.CharField(blank=True, default='', max_length=255)),
                ('body', models.BinaryField()),
                ('destination', models.CharField(blank=True, db_default='', default='', help_text='Destination of a delivered message: a subscriber, or subscriber/subscription.', max_length=401)),
                ('published_at', models.DateTimeField(db_default=delivery.models.moment.ArchiveClock())),
                ('owed', models.IntegerField(help_text='With how many deliveries it was accepted.', null=True)),
                ('transaction_id', models.BigIntegerField(help_text="PostgreSQL's xid8 of its publication.", null=True)),
                ('seen_before', models.BigIntegerField(help_text='Every transaction before this one had ended when it was published.', null=True)),
                ('edited_from', models.ForeignKey(db_constraint=False, db_index=False, help_text='The message of which this is an edited copy.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='delivery.message')),
                ('event_type', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='subscriptions.eventtype')),
                ('publisher', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='subscriptions.publisher')),
            ],
            options={
                'ordering': ['-id'],
            },
        )),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('digest', models.BinaryField(help_text="SHA-256 of the event type's name, the destination and the body, with NULs between.")),
                ('deliveries', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('publisher', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='subscriptions.publisher')),
                ('message', models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='delivery.message')),
            ],
        ),
        known(migrations.AddField(
            model_name='delivery',
            name='message',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.message'),
        )),
        migrations.AddField(
            model_name='callback',
            name='answer',
            field=models.OneToOneField(db_constraint=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='answers', to='delivery.message'),
        ),
        migrations.AddField(
            model_name='callback',
            name='message',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, related_name='callbacks', to='delivery.message'),
        ),
        migrations.CreateModel(
            name='OwnMessage',
            fields=[
            ],
            options={
                'verbose_name': 'own message',
                'ordering': ['-id'],
                'proxy': True,
                'default_permissions': ('view',),
                'indexes': [],
                'constraints': [],
            },
            bases=('delivery.message',),
        ),
        migrations.CreateModel(
            name='MessageReservation',
            fields=[
                ('first_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('until_id', models.BigIntegerField()),
                ('next_id', models.BigIntegerField()),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('next_id__gte', models.F('first_id')), ('next_id__lte', models.F('until_id'))), name='message_reservation_has_its_ids')],
            },
        ),
        migrations.CreateModel(
            name='PayloadView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(max_length=200)),
                ('message_id', models.BigIntegerField()),
                ('hour', models.DateTimeField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('views', models.PositiveIntegerField()),
            ],
            options={
                'verbose_name': 'payload view',
                'ordering': ['-id'],
                'permissions': [('view_payload', 'Can see payloads: bodies, header values and excerpts of answers')],
                'indexes': [models.Index(fields=['message_id'], name='payload_view_of_message'), models.Index(fields=['first_at'], name='payload_view_by_time')],
                'constraints': [models.UniqueConstraint(fields=('actor', 'message_id', 'hour'), name='payload_view_of_an_hour')],
            },
        ),
        migrations.CreateModel(
            name='PipelineRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('EXPORT', 'export'), ('ROLLUP', 'rollup'), ('VERIFY', 'verify'), ('REPLAY', 'replay'), ('REPORT', 'report'), ('EFFECT', 'effect'), ('COMPARE', 'compare')], max_length=7)),
                ('state', models.CharField(choices=[('WAITING', 'Waiting'), ('RUNNING', 'Running'), ('DONE', 'Done'), ('FAILED', 'Failed'), ('CANCELLED', 'Cancelled')], default='WAITING', max_length=9)),
                ('options', models.JSONField(default=dict)),
                ('asked_by', models.CharField(blank=True, default='', help_text='Empty: the schedule.', max_length=200)),
                ('asked_at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('is_stopping', models.BooleanField(db_default=False, default=False, help_text='A person wants it to stop.')),
                ('doing', models.CharField(blank=True, default='', max_length=200)),
                ('done', models.BigIntegerField(default=0)),
                ('count', models.BigIntegerField(null=True)),
                ('result', models.JSONField(default=dict)),
                ('error', models.TextField(blank=True, default='')),
                ('log', models.TextField(blank=True, default='')),
            ],
            options={
                'ordering': ['-id'],
                'permissions': [('make_report', 'Can make reports of the history')],
                'indexes': [models.Index(condition=models.Q(('state__in', ['WAITING', 'RUNNING'])), fields=['id'], name='pipeline_run_open')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['WAITING', 'RUNNING']), ('ended_at__isnull', False), _connector='XOR'), name='pipeline_run_ended'), models.UniqueConstraint(condition=models.Q(('state__in', ['WAITING', 'RUNNING']), ('step__in', ['EXPORT', 'ROLLUP', 'VERIFY'])), fields=('step',), name='pipeline_run_sole')],
            },
        ),
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=20)),
                ('text', models.TextField()),
                ('message_id', models.BigIntegerField(null=True)),
                ('delivery_id', models.BigIntegerField(null=True)),
                ('other_delivery_id', models.BigIntegerField(null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='delivery.pipelinerun')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='PipelineSchedule',
            fields=[
                ('step', models.CharField(choices=[('EXPORT', 'export'), ('ROLLUP', 'rollup'), ('VERIFY', 'verify'), ('REPLAY', 'replay'), ('REPORT', 'report'), ('EFFECT', 'effect'), ('COMPARE', 'compare')], max_length=7, primary_key=True, serialize=False)),
                ('every_minutes', models.PositiveIntegerField()),
                ('is_on', models.BooleanField(default=True, verbose_name='on')),
                ('next_at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
            ],
            options={
                'ordering': ['step'],
                'constraints': [models.CheckConstraint(condition=models.Q(('every_minutes__gte', 1)), name='schedule_has_a_pace')],
            },
        ),
        migrations.CreateModel(
            name='ReceivedRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('method', models.CharField(max_length=20)),
                ('headers', models.JSONField()),
                ('body', models.BinaryField()),
                ('size', models.BigIntegerField()),
                ('signature', models.CharField(choices=[('VALID', 'signature valid'), ('INVALID', 'signature invalid'), ('UNSIGNED', 'not signed'), ('UNKNOWN', 'no subscription sends here')], max_length=8)),
                ('answer', models.CharField(choices=[('OK', '204: delivered'), ('GONE', '410: rejected'), ('TOO_MANY', '429, Retry-After: 10'), ('ERROR', '500: server error'), ('SLOW', '204 after 5 s'), ('HANG', 'no answer for 2 min'), ('CLOSE', 'connection closed')], max_length=8)),
                ('message_id', models.BigIntegerField(null=True)),
                ('receiver', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='requests', to='delivery.builtinreceiver')),
            ],
            options={
                'ordering': ['-id'],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Replay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_types', models.JSONField(default=list)),
                ('filter', models.TextField(blank=True, default='')),
                ('header_filter_string', models.CharField(blank=True, default='', max_length=1000)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('rate', models.FloatField(help_text='Deliveries per second; empty: as fast as possible.', null=True)),
                ('state', models.CharField(choices=[('SELECTING', 'Selecting'), ('READY', 'Ready'), ('RUNNING', 'Running'), ('DONE', 'Done'), ('CANCELLED', 'Cancelled'), ('FAILED', 'Failed')], default='SELECTING', max_length=9)),
                ('preview', models.JSONField(default=list)),
                ('count', models.BigIntegerField(default=0)),
                ('done', models.BigIntegerField(default=0)),
                ('made', models.BigIntegerField(default=0, help_text='Deliveries created; the messages of the others no longer exist.')),
                ('position', models.BigIntegerField(default=0)),
                ('error', models.TextField(blank=True, default='')),
                ('asked_by', models.CharField(max_length=200)),
                ('asked_at', models.DateTimeField(db_default=delivery.models.moment.Clock())),
                ('due_at', models.DateTimeField(db_default=delivery.models.moment.Clock(), help_text='When the next batch is due, so that the rate is kept.')),
                ('ended_at', models.DateTimeField(null=True)),
                ('subscription', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='subscriptions.subscription')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        known(migrations.AddField(
            model_name='delivery',
            name='replay',
            field=models.ForeignKey(db_constraint=False, db_index=False, help_text='The replay that created it, if it was not the publication.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.replay'),
        )),
        migrations.CreateModel(
            name='ReplayItem',
            fields=[
                ('pk', models.CompositePrimaryKey('replay', 'message_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('message_id', models.BigIntegerField()),
                ('delivery_id', models.BigIntegerField(null=True)),
                ('replay', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='delivery.replay')),
            ],
        ),
        migrations.CreateModel(
            name='Reply',
            fields=[
                ('delivery_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('queue_group', models.SmallIntegerField(null=True)),
                ('deliveries', models.IntegerField(db_default=0, default=0)),
                ('digest', models.BinaryField(max_length=32)),
                ('replied_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('message', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='replies', to='delivery.message')),
                ('reply', models.OneToOneField(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='replied', to='delivery.message')),
            ],
            options={
                'verbose_name_plural': 'replies',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Resubmission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verb', models.CharField(choices=[('RESUBMIT', 'resubmit'), ('CANCEL', 'cancel')], db_default='RESUBMIT', default='RESUBMIT', max_length=8)),
                ('filter', models.JSONField(default=dict)),
                ('is_backlog', models.BooleanField(db_default=False, default=False)),
                ('rate', models.FloatField(help_text='Deliveries per second; empty: as fast as possible.', null=True)),
                ('actor', models.CharField(max_length=200)),
                ('state', models.CharField(choices=[('RUNNING', 'Running'), ('DONE', 'Done'), ('CANCELLED', 'Cancelled')], default='RUNNING', max_length=9)),
                ('count', models.BigIntegerField()),
                ('done', models.BigIntegerField(default=0)),
                ('changed', models.BigIntegerField(default=0)),
                ('position', models.BigIntegerField(default=0)),
                ('last_id', models.BigIntegerField(default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When the next batch is due, so that the rate is kept.')),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'resubmission',
                'verbose_name_plural': 'resubmissions and cancellations',
                'ordering': ['-id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('state', 'RUNNING'), ('ended_at__isnull', False), _connector='XOR'), name='resubmission_ended'), models.CheckConstraint(condition=models.Q(('changed__lte', models.F('done'))), name='resubmission_counts')],
            },
        ),
        migrations.CreateModel(
            name='RetentionRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('RUNNING', 'Running'), ('DONE', 'Done')], default='RUNNING', max_length=7)),
                ('first_id', models.BigIntegerField(default=0)),
                ('position', models.BigIntegerField(default=0)),
                ('last_id', models.BigIntegerField(default=0)),
                ('messages', models.BigIntegerField(default=0)),
                ('deliveries', models.BigIntegerField(default=0)),
                ('attempts', models.BigIntegerField(default=0)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'retention pass',
                'verbose_name_plural': 'retention passes',
                'ordering': ['-id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('state', 'RUNNING'), ('ended_at__isnull', False), _connector='XOR'), name='retention_ended'), models.UniqueConstraint(condition=models.Q(('state', 'RUNNING')), fields=('state',), name='retention_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='Shard',
            fields=[
                ('id', models.SmallIntegerField(primary_key=True, serialize=False)),
                ('epoch', models.BigIntegerField(default=0)),
                ('owner', models.UUIDField(null=True)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id__gte', 0), ('id__lt', 512)), name='shard_exists')],
            },
        ),
        migrations.CreateModel(
            name='SubscriptionTraffic',
            fields=[
                ('pk', models.CompositePrimaryKey('subscription', 'at', 'step', blank=True, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('step', models.SmallIntegerField()),
                ('delivered', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
                ('subscription', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='subscriptions.subscription')),
            ],
        ),
        migrations.CreateModel(
            name='TrafficMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('until', models.DateTimeField()),
                ('accepted', models.BigIntegerField(default=0)),
                ('delivered', models.BigIntegerField(default=0)),
                ('failed', models.BigIntegerField(default=0)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='traffic_mark_is_one_row')],
            },
        ),
        migrations.CreateModel(
            name='UrlHealth',
            fields=[
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('url', models.CharField(max_length=2000, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('ENABLED', 'Enabled'), ('DISABLED', 'Disabled'), ('FROZEN', 'Frozen')], default='ENABLED', max_length=8)),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempts', models.BigIntegerField(default=0)),
                ('failures', models.BigIntegerField(default=0)),
                ('failures_in_row', models.BigIntegerField(default=0)),
                ('last_success_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('next_probe_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'URL',
                'verbose_name_plural': 'URLs',
                'ordering': ['url'],
                'indexes': [models.Index(condition=models.Q(('state', 'ENABLED'), _negated=True), fields=['since'], name='url_health_broken'), models.Index(fields=['changed_in'], name='url_health_changed')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state', 'DISABLED'), ('next_probe_at', None), _connector='XOR'), name='url_probed_while_disabled')],
            },
        ),
        migrations.CreateModel(
            name='ArchiveFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('table', models.CharField(max_length=20)),
                ('day', models.DateField()),
                ('path', models.CharField(max_length=500, unique=True)),
                ('staged', models.CharField(help_text='Where it was written, before it was moved into place.', max_length=500)),
                ('rows', models.BigIntegerField()),
                ('bytes', models.BigIntegerField()),
                ('first_id', models.BigIntegerField(help_text="Of messages, deliveries and entries their own; of attempts the deliveries'.")),
                ('last_id', models.BigIntegerField()),
                ('chunk', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='files', to='delivery.archivechunk')),
                ('replaced_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replaces', to='delivery.archivechunk')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(fields=['table', 'day'], name='archive_file_by_day')],
            },
        ),
        migrations.CreateModel(
            name='DedupKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.BinaryField(max_length=32)),
                ('delivery_id', models.BigIntegerField()),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('subscription', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='subscriptions.subscription')),
            ],
            options={
                'indexes': [models.Index(fields=['subscription', 'seen_at'], name='dedup_key_by_time')],
                'constraints': [models.UniqueConstraint(fields=('subscription', 'key'), name='dedup_key_of_a_subscription')],
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
        migrations.AddIndex(
            model_name='lane',
            index=models.Index(condition=models.Q(('state__in', ['BLOCKED', 'SUSPENDED'])), fields=['since'], name='lane_stopped'),
        ),
        migrations.AddIndex(
            model_name='lane',
            index=models.Index(condition=models.Q(('catch_up_to__isnull', False)), fields=['id'], name='lane_catching_up'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.UniqueConstraint(condition=models.Q(('kind', 'TOPIC'), _negated=True), fields=('kind', 'number'), name='lane_number_of_a_kind'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.CheckConstraint(condition=models.Q(('kind', 'TOPIC'), ('subscriber', None), _connector='XOR'), name='lane_topic_has_subscriber'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'BLOCKED'), _negated=True), ('delivery_id__isnull', False), _connector='OR'), name='lane_blocked_by_a_delivery'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.CheckConstraint(condition=models.Q(('run_attempts__len', models.F('run_ids__len'))), name='lane_run_knows_its_attempts'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.CheckConstraint(condition=models.Q(('catch_up_to__isnull', True), ('catch_up_rate__isnull', False), _connector='XOR'), name='lane_catches_up_at_a_rate'),
        ),
        migrations.AddIndex(
            model_name='mailboxrate',
            index=models.Index(fields=['at'], name='mailbox_rate_by_time'),
        ),
        migrations.AddIndex(
            model_name='idempotencykey',
            index=models.Index(fields=['created_at'], name='idempotency_key_by_time'),
        ),
        migrations.AddConstraint(
            model_name='idempotencykey',
            constraint=models.UniqueConstraint(fields=('publisher', 'key'), name='idempotency_key_of_a_publisher'),
        ),
        migrations.AddConstraint(
            model_name='callback',
            constraint=models.UniqueConstraint(fields=('message', 'queue_group'), name='callback_of_a_group'),
        ),
        migrations.AddConstraint(
            model_name='callback',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('answer', None), ('answered_at', None)), models.Q(('answer__isnull', False), ('answered_at__isnull', False)), _connector='OR'), name='callback_answered'),
        ),
        migrations.AddConstraint(
            model_name='callback',
            constraint=models.CheckConstraint(condition=models.Q(('hop__gte', 1), ('hop__lte', 10)), name='callback_chain_ends'),
        ),
        migrations.AddIndex(
            model_name='receivedrequest',
            index=models.Index(fields=['receiver', '-id'], name='request_of_receiver'),
        ),
        migrations.AddIndex(
            model_name='receivedrequest',
            index=models.Index(fields=['at'], name='request_by_time'),
        ),
        migrations.AddConstraint(
            model_name='replay',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['SELECTING', 'READY', 'RUNNING']), ('ended_at__isnull', False), _connector='XOR'), name='replay_ended'),
        ),
        migrations.AddConstraint(
            model_name='replay',
            constraint=models.CheckConstraint(condition=models.Q(('since__lt', models.F('until'))), name='replay_is_a_piece_of_time'),
        ),
        migrations.AddConstraint(
            model_name='replay',
            constraint=models.CheckConstraint(condition=models.Q(('done__lte', models.F('count')), ('made__lte', models.F('done'))), name='replay_counts'),
        ),
        migrations.AddIndex(
            model_name='replayitem',
            index=models.Index(condition=models.Q(('delivery_id', None)), fields=['message_id'], name='replay_item_to_do'),
        ),
        migrations.AddConstraint(
            model_name='reply',
            constraint=models.UniqueConstraint(fields=('message', 'queue_group'), name='reply_of_a_group'),
        ),
        migrations.AddIndex(
            model_name='subscriptiontraffic',
            index=models.Index(fields=['at'], name='subscription_traffic_by_time'),
        ),
    ]
