"""The history: the ledger of its archive, runs of the pipeline, what the rollup computes, and replays.

A trigger remembers how a settled delivery was settled before it is changed: whatever changes it, also what is written later,
the next export knows which of its attempts are archived already.
"""

from datetime import timedelta

import delivery.models.moment
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models
from django.utils import timezone

REMEMBER = """
CREATE FUNCTION delivery_remember_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery_earliersettlement (delivery_id, settled_at, attempts, ended_by, ended_at)
    VALUES (OLD.id, OLD.settled_at, OLD.attempts, pg_current_xact_id()::text, clock_timestamp());
    RETURN NULL;
END
$$;
CREATE TRIGGER delivery_remember_settlement AFTER UPDATE ON delivery_delivery
FOR EACH ROW WHEN (OLD.settled_at IS NOT NULL AND NEW.settled_at IS DISTINCT FROM OLD.settled_at)
EXECUTE FUNCTION delivery_remember_settlement();
"""
FORGET = """
DROP TRIGGER delivery_remember_settlement ON delivery_delivery;
DROP FUNCTION delivery_remember_settlement();
"""

SCHEDULES = {'EXPORT': 60, 'ROLLUP': 60, 'VERIFY': 24 * 60}


# Whoever has just installed it has other things to look at than a JVM that starts.
FIRST_AFTER = timedelta(minutes=15)


def make_schedules(apps, schema_editor):
    schedules = apps.get_model('delivery', 'PipelineSchedule').objects.using(schema_editor.connection.alias)
    for step, minutes in SCHEDULES.items():
        defaults = {'every_minutes': minutes, 'next_at': timezone.now() + FIRST_AFTER}
        schedules.get_or_create(step=step, defaults=defaults)


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0012_lists_by_owner'),
        ('subscriptions', '0006_roles_and_sign_ins'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='owed',
            field=models.IntegerField(help_text='With how many deliveries it was accepted.', null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='seen_before',
            field=models.BigIntegerField(help_text='Every transaction before this one had ended when it was published.', null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='transaction_id',
            field=models.BigIntegerField(help_text="PostgreSQL's xid8 of its publication.", null=True),
        ),
        migrations.AlterField(
            model_name='journalentry',
            name='at',
            field=models.DateTimeField(db_default=delivery.models.moment.Clock()),
        ),
        migrations.AlterField(
            model_name='journalentry',
            name='kind',
            field=models.CharField(choices=[('UNMATCHED', 'a message nobody wants'), ('BLOCKED', 'a lane is blocked'), ('RESUMED', 'a lane flows again'), ('IN_DOUBT', 'a delivery may have been sent'), ('RETRIED', 'a person asked for a retry now'), ('SKIPPED', 'a person skipped a message'), ('CANCELLED', 'a person cancelled deliveries'), ('RESUBMITTED', 'a person sent deliveries again'), ('ACTIVATED', 'a subscription was made ACTIVE'), ('DEACTIVATED', 'a subscription was made INACTIVE'), ('FAILED', "a delivery's attempts are used up"), ('SUSPENDED', 'a lane is suspended'), ('DISABLED', 'a URL is disabled'), ('FROZEN', 'a URL is frozen'), ('ENABLED', 'a URL is enabled again'), ('RESOLVED', 'a person decided what was in doubt'), ('DUPLICATE', 'a message that came before'), ('AMBIGUOUS', 'several subscriptions qualified for a SYNC message'), ('CALLBACK', 'an endpoint answered by callback'), ('EXPIRED', 'deliveries whose time is over'), ('REPLAYED', 'a person replayed messages'), ('TESTED', 'a person sent a test message'), ('REMOVED', 'retention removed messages')], max_length=11),
        ),
        migrations.AlterField(
            model_name='message',
            name='published_at',
            field=models.DateTimeField(db_default=delivery.models.moment.Clock()),
        ),
        migrations.CreateModel(
            name='ArchiveChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('EXPORT', 'Export'), ('COMPACTION', 'Compaction')], default='EXPORT', max_length=10)),
                ('state', models.CharField(choices=[('WRITING', 'Writing'), ('MOVING', 'Moving'), ('DONE', 'Done')], default='WRITING', max_length=7)),
                ('run_id', models.BigIntegerField(help_text='The pipeline run that made it.')),
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
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('state', 'DONE'), _negated=True), ('ended_at__isnull', False), _connector='XOR'), name='chunk_ended'), models.CheckConstraint(condition=models.Q(('since__lte', models.F('until'))), name='chunk_is_a_piece_of_time'), models.UniqueConstraint(condition=models.Q(('state', 'DONE'), _negated=True), fields=('kind',), name='chunk_one_under_way_of_a_kind')],
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
            },
        ),
        migrations.CreateModel(
            name='EarlierSettlement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('delivery_id', models.BigIntegerField()),
                ('settled_at', models.DateTimeField()),
                ('attempts', models.IntegerField()),
                ('ended_by', models.TextField(help_text="PostgreSQL's xid8.")),
                ('ended_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['delivery_id'], name='earlier_settlement_of')],
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
                'ordering': ['hour', 'subscription_id'],
                'indexes': [models.Index(fields=['subscription_id', 'hour'], name='history_hour_of')],
                'constraints': [models.UniqueConstraint(fields=('hour', 'subscription_id', 'subscriber', 'event_type'), name='history_hour_once')],
            },
        ),
        migrations.CreateModel(
            name='PipelineRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('EXPORT', 'export'), ('ROLLUP', 'rollup'), ('VERIFY', 'verify'), ('REPLAY', 'replay'), ('REPORT', 'report')], max_length=6)),
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
                ('step', models.CharField(choices=[('EXPORT', 'export'), ('ROLLUP', 'rollup'), ('VERIFY', 'verify'), ('REPLAY', 'replay'), ('REPORT', 'report')], max_length=6, primary_key=True, serialize=False)),
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
            name='Replay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_types', models.JSONField(default=list)),
                ('filter', models.TextField(blank=True, default='')),
                ('header_filter_string', models.CharField(blank=True, default='', max_length=1000)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('rate', models.FloatField(help_text='Deliveries a second; empty: as fast as it goes.', null=True)),
                ('state', models.CharField(choices=[('SELECTING', 'Selecting'), ('READY', 'Ready'), ('RUNNING', 'Running'), ('DONE', 'Done'), ('CANCELLED', 'Cancelled'), ('FAILED', 'Failed')], default='SELECTING', max_length=9)),
                ('preview', models.JSONField(default=list)),
                ('count', models.BigIntegerField(default=0)),
                ('done', models.BigIntegerField(default=0)),
                ('made', models.BigIntegerField(default=0, help_text='Deliveries made; of the others the message was nowhere any more.')),
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
        migrations.AddField(
            model_name='delivery',
            name='replay',
            field=models.ForeignKey(db_index=False, help_text="What made it, instead of its message's publication.", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='delivery.replay'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('replay__isnull', False)), fields=['replay', '-id'], name='delivery_of_replay'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(condition=models.Q(('replay__isnull', False)), fields=('replay', 'message'), name='delivery_once_of_a_replay'),
        ),
        migrations.CreateModel(
            name='ReplayItem',
            fields=[
                ('pk', models.CompositePrimaryKey('replay', 'message_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('replay', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='delivery.replay')),
                ('message_id', models.BigIntegerField()),
                ('delivery_id', models.BigIntegerField(null=True)),
            ],
        ),
        migrations.AddIndex(
            model_name='archivefile',
            index=models.Index(fields=['table', 'day'], name='archive_file_by_day'),
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
        migrations.AddIndex(
            model_name='archivechunk',
            index=models.Index(condition=models.Q(('kind', 'EXPORT'), ('state', 'DONE')), fields=['-since'], name='chunk_of_a_time'),
        ),
        migrations.RunSQL(REMEMBER, FORGET),
        migrations.RunPython(make_schedules, migrations.RunPython.noop),
    ]
