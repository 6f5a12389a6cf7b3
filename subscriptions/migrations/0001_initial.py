import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import re
import subscriptions.models.secret
import subscriptions.values.encryption
import subscriptions.values.filter_strings
import subscriptions.values.number_lists
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='CommonScript',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('text', models.TextField(help_text='JavaScript (ES5), as in scripts of subscriptions.')),
                ('runs_first', models.BooleanField(default=False, help_text='It is executed before each script of a subscription, which need not include it.')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ConfigurationTransaction',
            fields=[
                ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ConfigurationChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('actor', models.CharField(help_text='Name of the user, or the key used.', max_length=200)),
                ('action', models.CharField(help_text='created, changed, deleted, rotated …', max_length=30)),
                ('object_type', models.CharField(max_length=50)),
                ('object_name', models.CharField(max_length=450)),
                ('before', models.JSONField(null=True)),
                ('after', models.JSONField(null=True)),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['object_type', 'object_name'], name='change_of_object'), models.Index(fields=['actor', '-id'], name='change_by_actor'), models.Index(fields=['at'], name='change_by_time')],
            },
        ),
        migrations.CreateModel(
            name='EventType',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('kind', models.CharField(choices=[('TOPIC', 'TOPIC: to every matching subscription'), ('QUEUE', 'QUEUE: to one endpoint of a group'), ('SYNC', 'SYNC: to one subscription, while the publisher waits')], default='TOPIC', max_length=5)),
                ('content_type', models.CharField(default='application/json', max_length=100)),
                ('sample', models.JSONField(blank=True, help_text='A message as publishers send it.', null=True)),
                ('json_schema', models.JSONField(blank=True, help_text='JSON Schema that every message must satisfy.', null=True)),
                ('durability', models.CharField(choices=[('GUARANTEED', 'GUARANTEED: on disk before the answer'), ('VOLATILE', 'VOLATILE: tried once, lost on a crash')], default='GUARANTEED', max_length=10)),
                ('ttl_seconds', models.PositiveIntegerField(blank=True, help_text='Undelivered messages are EXPIRED after this time. Empty: never, except in a mailbox.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='time to live, seconds')),
                ('errors_when', models.CharField(choices=[('DELIVERY', 'DELIVERY: each failed delivery is published'), ('GROUP', 'GROUP: of a QUEUE group only the last endpoint that failed, when none was delivered')], default='DELIVERY', help_text='Failures that are published as Inturn.Delivery.Failed.', max_length=8, verbose_name='errors when')),
                ('forward_headers', models.JSONField(blank=True, default=list, help_text='Headers that new subscriptions forward by default.')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.CheckConstraint(condition=models.Q(('kind', 'QUEUE'), ('errors_when', 'DELIVERY'), _connector='OR'), name='event_type_with_groups_is_a_queue', violation_error_message='Only a QUEUE has groups: give errors_when DELIVERY.'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'SYNC'), _negated=True), models.Q(('durability', 'GUARANTEED'), ('ttl_seconds', None)), _connector='OR'), name='event_type_sync_is_answered_at_once', violation_error_message='A SYNC message is answered at once: it is GUARANTEED and has no ttl_seconds.')],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('held_until', models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True)),
                ('catch_up_rate', models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)])),
                ('sending', models.CharField(choices=[('ACTIVE', 'ACTIVE: deliveries are sent'), ('HELD', 'HELD: nothing is sent or handed out')], default='ACTIVE', max_length=8)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='installation_is_one_row'), models.CheckConstraint(condition=models.Q(('sending', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='installation_ends_holding')],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('success_codes', models.CharField(default='2xx', help_text='Answers that count as success: 2xx, or status codes separated by commas, such as 200,201. Any other 2xx then counts as a 5xx.', max_length=100, validators=[subscriptions.values.number_lists.check_success_codes])),
                ('on_unreachable', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='BLOCK', help_text='The endpoint cannot be reached, TLS fails, or it times out.', max_length=12)),
                ('on_unavailable', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='SKIP', help_text='The endpoint answers 503.', max_length=12)),
                ('on_server_error', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='SKIP', help_text='The endpoint answers 5xx, but not 503.', max_length=12)),
                ('on_rate_limited', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='REJECT', help_text='The endpoint answers 429.', max_length=12)),
                ('on_client_error', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='REJECT', help_text='The endpoint answers 4xx, but not 429.', max_length=12)),
                ('on_redirect', models.CharField(choices=[('BLOCK', 'block: nothing later is sent until this one succeeds'), ('SKIP', 'skip: the next is sent, this one again in the next run'), ('REJECT', 'reject: REJECTED, never sent again'), ('UNSUPPORTED', 'unsupported: 3xxNOTSUPPORTED, never sent again'), ('RETRY_LANE', 'retry lane: fresh messages flow, this one is tried again on schedule'), ('IN_PLACE', 'retry in place: tried again on schedule, and no later message is sent before it')], default='UNSUPPORTED', help_text='The endpoint answers 3xx, which is never followed.', max_length=12)),
                ('in_doubt', models.CharField(choices=[('RESEND', 'resend: same webhook-id, marked as a redelivery'), ('HOLD', 'hold: IN_DOUBT until a person decides')], default='RESEND', help_text='A sender died after sending, before the outcome was recorded.', max_length=6)),
                ('blocks_when_overloaded', models.BooleanField(default=False, help_text='503 and 429 block the lane, and Retry-After is honoured.')),
                ('pause_seconds', models.PositiveIntegerField(default=1, help_text='Seconds. First pause of a blocked lane; it doubles.', validators=[django.core.validators.MinValueValidator(1)])),
                ('pause_max_seconds', models.PositiveIntegerField(default=60, help_text='Seconds. Longest pause of a blocked lane.', validators=[django.core.validators.MaxValueValidator(86400)])),
                ('retry_after_max_seconds', models.PositiveIntegerField(default=3600, help_text='Seconds. Longest Retry-After that is honoured.', validators=[django.core.validators.MaxValueValidator(86400)])),
                ('retry_schedule', models.CharField(choices=[('FIXED', 'fixed: the same time after each failure'), ('EXPONENTIAL', 'exponential: (2^n - 1) times as long after the first failure'), ('LISTED', 'listed: each retry has its own wait after the failure before it')], default='FIXED', help_text='Schedule of retries. EXPONENTIAL is for the retry lane only.', max_length=11)),
                ('retry_seconds', models.FloatField(default=10, help_text='Seconds between tries of a FIXED schedule; the unit of an EXPONENTIAL one.', validators=[django.core.validators.MinValueValidator(0.1), django.core.validators.MaxValueValidator(86400)])),
                ('retry_waits', models.CharField(blank=True, default='', help_text='Seconds, separated by commas: the waits of a LISTED schedule, such as 5,300,1800. Later retries have the last wait.', max_length=300, validators=[subscriptions.values.number_lists.check_seconds_listed])),
                ('retry_jitter', models.FloatField(default=0, help_text='Share by which a wait varies by chance: 0.1 is up to a tenth shorter or longer.', validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(0.5)])),
                ('max_attempts', models.PositiveIntegerField(blank=True, help_text='Attempts of one delivery, the first included. Empty: until it succeeds.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100000)])),
                ('when_used_up', models.CharField(choices=[('FAIL', 'fail: the delivery is FAILED, the next is sent'), ('SUSPEND', 'suspend: the lane is SUSPENDED until the probe URL answers 2xx or a person resumes it')], default='FAIL', help_text='The action after max_attempts. SUSPEND is for retries in place only.', max_length=7)),
                ('suspends_on_reject', models.BooleanField(default=False, help_text='A REJECTED delivery suspends the lane until a person resumes it.')),
                ('probe_seconds', models.PositiveIntegerField(default=60, help_text="Seconds between two calls of the subscription's probe URL while the lane is suspended.", validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(86400)])),
                ('breaks_circuit', models.BooleanField(default=False, help_text='A URL that keeps failing is DISABLED and tried once in a while, at last FROZEN until a person releases it. Due deliveries wait; none are discarded.')),
                ('freezes_when_gone', models.BooleanField(default=False, help_text='An answer of 410 (Gone) freezes the URL at once: nothing is sent to it until a person releases it. It needs breaks_circuit.')),
                ('breaker_percent', models.PositiveSmallIntegerField(default=70, help_text='Percent. DISABLED when more than this share of the attempts failed, of more than breaker_attempts.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)])),
                ('breaker_attempts', models.PositiveIntegerField(default=100, help_text='Attempts at a URL that breaker_percent does not count yet.')),
                ('breaker_failures', models.PositiveIntegerField(default=2000, help_text='Failures in a row. DISABLED after this many, whatever the share.', validators=[django.core.validators.MinValueValidator(1)])),
                ('breaker_probe_seconds', models.PositiveIntegerField(default=600, help_text='Seconds between two tries of a DISABLED URL.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(86400)])),
                ('freeze_failures', models.PositiveIntegerField(default=2000, help_text='Failures in a row. FROZEN after more than this many, when freeze_hours passed without a success.', validators=[django.core.validators.MinValueValidator(1)])),
                ('freeze_hours', models.PositiveIntegerField(default=72, help_text='Hours without a success until freeze_failures counts.', validators=[django.core.validators.MaxValueValidator(87600)])),
                ('freeze_failures_at_once', models.PositiveIntegerField(default=50000, help_text='Failures in a row. FROZEN after this many, whenever the last success was.', validators=[django.core.validators.MinValueValidator(1)])),
                ('is_built_in', models.BooleanField(default=False, editable=False)),
            ],
            options={
                'verbose_name_plural': 'policies',
                'ordering': ['name'],
                'abstract': False,
                'indexes': [models.Index(fields=['changed_in'], name='policy_changed')],
                'constraints': [models.CheckConstraint(condition=models.Q(('pause_seconds__lte', models.F('pause_max_seconds'))), name='policy_pause_grows', violation_error_message='pause_seconds must not be more than pause_max_seconds.'), models.CheckConstraint(condition=models.Q(models.Q(('when_used_up', 'SUSPEND'), _negated=True), ('max_attempts__isnull', False), _connector='OR'), name='policy_suspends_after_attempts', violation_error_message='when_used_up SUSPEND needs max_attempts.'), models.CheckConstraint(condition=models.Q(('breaks_circuit', False), models.Q(('freeze_failures__gte', models.F('breaker_failures')), ('freeze_failures_at_once__gte', models.F('freeze_failures'))), _connector='OR'), name='policy_freezes_after_disabling', violation_error_message='A URL is disabled before it is frozen.')],
            },
        ),
        migrations.CreateModel(
            name='Publisher',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('all_event_types', models.BooleanField(default=True, help_text='May publish every event type, including future ones.')),
                ('errors_to', models.CharField(blank=True, default='', help_text='Recipient of failures to deliver its messages, unless a message has ErrorsTo: a subscriber, or subscriber/subscription, with a subscription to Inturn.Delivery.Failed; - for nobody. Empty: every matching subscription.', max_length=401, verbose_name='errors to')),
                ('developers', models.ManyToManyField(blank=True, help_text='People with the role Developers who see its messages and deliveries.', related_name='publishers', to=settings.AUTH_USER_MODEL)),
                ('event_types', models.ManyToManyField(blank=True, help_text='Event types that it may publish, unless it may publish all.', to='subscriptions.eventtype')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='PublishId',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('hint', models.CharField(editable=False, help_text='The end of the id, to recognise it by.', max_length=12)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('publisher', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='publish_ids', to='subscriptions.publisher')),
            ],
            options={
                'verbose_name': 'publish id',
                'ordering': ['-id'],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ScriptLibrary',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('version', models.IntegerField(default=0)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='scriptlibrary_is_one_row')],
            },
        ),
        migrations.CreateModel(
            name='SignIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('kind', models.CharField(choices=[('SIGNED_IN', 'the password was right'), ('FAILED', 'the password or the name was wrong'), ('REFUSED', 'too many failures: the password was not even looked at'), ('SIGNED_OUT', 'left by signing out')], max_length=10)),
                ('username', models.CharField(blank=True, default='', help_text='Empty: the name is unknown.', max_length=150)),
                ('address', models.GenericIPAddressField(null=True)),
                ('account', models.CharField(max_length=64)),
                ('origin', models.CharField(max_length=43)),
                ('counts', models.BooleanField(default=False)),
            ],
            options={
                'verbose_name': 'sign-in',
                'ordering': ['-id'],
                'indexes': [models.Index(condition=models.Q(('counts', True)), fields=['account', '-at'], name='sign_in_of_account'), models.Index(condition=models.Q(('counts', True)), fields=['origin', '-at'], name='sign_in_from_origin'), models.Index(fields=['origin', '-id'], name='sign_in_last_of_origin'), models.Index(fields=['username', '-id'], name='sign_in_of_user'), models.Index(fields=['at'], name='sign_in_by_time')],
                'constraints': [models.CheckConstraint(condition=models.Q(('counts', False), ('kind', 'FAILED'), _connector='OR'), name='sign_in_only_failures_count')],
            },
        ),
        migrations.CreateModel(
            name='Subscriber',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('name', models.CharField(max_length=200, unique=True, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('description', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('held_until', models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True)),
                ('catch_up_rate', models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)])),
                ('processing', models.CharField(choices=[('SERIAL', 'SERIAL: one at a time, in order'), ('CONCURRENT', 'CONCURRENT: several at a time, no order')], default='SERIAL', max_length=10)),
                ('max_in_flight', models.PositiveSmallIntegerField(default=1, help_text='CONCURRENT: maximum number of simultaneous deliveries.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)])),
                ('max_queued_to_send', models.PositiveIntegerField(default=500, help_text='Number of deliveries that a sender reads at a time.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10000)])),
                ('refill_level', models.PositiveIntegerField(default=100, help_text='The sender reads again when this many remain.')),
                ('by_priority', models.BooleanField(db_default=False, default=False, help_text='CONCURRENT: messages with a higher Priority header, 9 to 0, are sent first. SERIAL ignores it.')),
                ('match_mode', models.CharField(choices=[('ALL', 'ALL: every matching subscription gets the message'), ('FIRST', 'FIRST: only the first by position')], default='ALL', max_length=5)),
                ('queue_id', models.CharField(blank=True, default='', help_text="The queue's id in the old Event Queue: its clients find the mailbox at /event/queue/<queue id>/next.", max_length=200, validators=[django.core.validators.RegexValidator('\\A[A-Za-z0-9_][A-Za-z0-9._~@:-]*\\Z', "Use letters, digits and . _ ~ @ : -, as in the queue's old address.")], verbose_name='queue id')),
                ('queue_password', models.CharField(blank=True, default='', editable=False, max_length=200)),
                ('headers', subscriptions.values.encryption.EncryptedJSONField(blank=True, default=None, editable=False, null=True)),
                ('status', models.CharField(choices=[('ACTIVE', 'Active'), ('HELD', 'Held'), ('INACTIVE', 'Inactive')], default='ACTIVE', editable=False, max_length=8)),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'indexes': [models.Index(fields=['changed_in'], name='subscriber_changed'), models.Index(condition=models.Q(('status', 'ACTIVE'), _negated=True), fields=['id'], name='subscriber_held'), models.Index(condition=models.Q(('held_until__isnull', False)), fields=['held_until'], name='subscriber_held_until')],
                'constraints': [models.CheckConstraint(condition=models.Q(('refill_level__lt', models.F('max_queued_to_send'))), name='subscriber_refills_before_it_is_full', violation_error_message='refill_level must be less than max_queued_to_send.'), models.UniqueConstraint(condition=models.Q(('queue_id', ''), _negated=True), fields=('queue_id',), name='subscriber_has_its_queue_id_alone', violation_error_message='Another subscriber has this queue id.'), models.CheckConstraint(condition=models.Q(('status', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='subscriber_ends_holding')],
            },
        ),
        migrations.CreateModel(
            name='Subscription',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('held_until', models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True)),
                ('catch_up_rate', models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)])),
                ('name', models.CharField(max_length=200, validators=[django.core.validators.RegexValidator(re.compile('\\A[A-Za-z0-9][A-Za-z0-9._-]*\\Z'), 'Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.')])),
                ('mode', models.CharField(choices=[('PUSH', 'PUSH: sent to an endpoint'), ('PULL', 'PULL: kept in a mailbox until fetched')], default='PUSH', max_length=4)),
                ('endpoint', models.CharField(blank=True, default='', help_text='https://…, or with a method: PATCH:https://…', max_length=2000)),
                ('header_filter_string', models.CharField(blank=True, default='', help_text='Only messages whose FILTER_STRING header equals this.', max_length=1000, validators=[subscriptions.values.filter_strings.validate_filter_string])),
                ('filter', models.TextField(blank=True, default='', help_text="e.g. $$->'Body'->'project'->>'id' = 'proj1008'")),
                ('filter_identity', models.TextField(blank=True, default='', editable=False)),
                ('script', models.TextField(blank=True, db_default='', default='', help_text='TOPIC: turns each message into the request. SYNC with the endpoint webr://: makes the answer.')),
                ('script_version', models.IntegerField(db_default=0, default=0, editable=False)),
                ('headers', subscriptions.values.encryption.EncryptedJSONField(blank=True, default=dict)),
                ('auth', subscriptions.values.encryption.EncryptedJSONField(blank=True, default=dict)),
                ('forward_headers', models.JSONField(blank=True, default=list, help_text='Which headers of a message are sent along: names, or beginnings with * at the end.')),
                ('forward_authorization', models.BooleanField(default=False, help_text="SYNC: the publisher's X-Forward-Authorization is passed on as Authorization, and never stored.")),
                ('timeout_seconds', models.PositiveSmallIntegerField(default=30, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(120)])),
                ('probe_url', models.CharField(blank=True, default='', help_text='Called by GET while the lane is suspended; the lane resumes when the answer is 2xx.', max_length=2000)),
                ('lets_pass_on_timeout', models.BooleanField(default=False, help_text='SYNC: when the endpoint gives no answer, in time or at all, the publisher gets 200 and an empty body instead of 504 or 502.')),
                ('dedup_mode', models.CharField(choices=[('NONE', 'none'), ('KEY', "key: by the message's Idempotency-Key"), ('PATH', 'path: by the value at a path of the filter language')], default='NONE', max_length=4)),
                ('dedup_path', models.CharField(blank=True, default='', help_text="e.g. $$->'Body'->>'id'; when dedup_mode is PATH.", max_length=1000)),
                ('dedup_window_seconds', models.PositiveIntegerField(default=259200, help_text='How long a message is remembered.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(2678400)])),
                ('join_mode', models.CharField(choices=[('NONE', 'none'), ('ALL', 'ALL: one message of each is sent together'), ('ONLY_ONE', 'ONLY ONE: the first is sent, the others are not')], db_default='NONE', default='NONE', max_length=8)),
                ('join_name', models.CharField(blank=True, db_default='', default='', help_text='The subscriptions of a subscriber with the same join_mode and join_name are one join.', max_length=200)),
                ('join_path', models.CharField(blank=True, db_default='', default='', help_text='Path to the activation id; empty: the header Activation.', max_length=1000)),
                ('join_seconds', models.PositiveIntegerField(db_default=86400, default=86400, help_text='ALL: how long a message waits for the others. ONLY_ONE: how long the others are not sent.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(2678400)])),
                ('max_receives', models.PositiveSmallIntegerField(blank=True, help_text='PULL: a message that was fetched so often and never acknowledged is FAILED. Empty: it returns until it expires.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)])),
                ('status', models.CharField(choices=[('ACTIVE', 'Active'), ('HELD', 'Held'), ('SHADOW', 'Shadow'), ('INACTIVE', 'Inactive')], default='ACTIVE', max_length=8)),
                ('cancellation_id', models.BigIntegerField(editable=False, help_text='The running cancellation of its backlog: nothing is sent until it has ended.', null=True)),
                ('takes_unmatched', models.BooleanField(default=False, help_text='TOPIC: gets only messages that match no other subscription of the event type.', verbose_name='default destination')),
                ('position', models.PositiveIntegerField(default=0, help_text='Priority, lowest first, where only one subscription gets a message: match mode FIRST, or a SYNC event type.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('event_type', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='subscriptions', to='subscriptions.eventtype')),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='subscriptions', to='subscriptions.policy')),
                ('subscriber', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='subscriptions', to='subscriptions.subscriber')),
            ],
            options={
                'ordering': ['subscriber', 'position', 'id'],
                'permissions': [('toggle_subscription', 'Can make subscriptions and subscribers ACTIVE, HELD and INACTIVE')],
            },
        ),
        migrations.CreateModel(
            name='SigningSecret',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_in', models.BigIntegerField(editable=False, null=True)),
                ('secret', subscriptions.values.encryption.EncryptedJSONField(default=subscriptions.models.secret.new_secret)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('subscription', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='subscriptions.subscription')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='WorkfrontSubscription',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ('document', models.JSONField()),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('subscription', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='workfront', to='subscriptions.subscription')),
            ],
            options={
                'verbose_name': 'Workfront subscription',
                'ordering': ['subscription'],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list_name', models.CharField(max_length=100)),
                ('name', models.CharField(max_length=80)),
                ('query', models.CharField(max_length=2000)),
                ('is_shared', models.BooleanField(default=False)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'id'],
                'default_permissions': (),
                'indexes': [models.Index(fields=['list_name', 'name'], name='saved_view_of_list')],
                'constraints': [models.UniqueConstraint(fields=('owner', 'list_name', 'name'), name='saved_view_has_its_name_once')],
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, default='', max_length=200)),
                ('scope', models.CharField(choices=[('publish', 'publish: as one publisher'), ('fetch', "fetch: one subscriber's mailbox"), ('read', 'read: messages, deliveries and lanes'), ('manage', 'manage: everything but publishing and fetching')], max_length=7)),
                ('hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('hint', models.CharField(editable=False, help_text='The last characters of the key, to recognise it.', max_length=12)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('publisher', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='subscriptions.publisher')),
                ('subscriber', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='subscriptions.subscriber')),
            ],
            options={
                'verbose_name': 'key',
                'ordering': ['-id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('publisher__isnull', False), ('scope', 'publish'), ('subscriber', None)), models.Q(('publisher', None), ('scope', 'fetch'), ('subscriber__isnull', False)), models.Q(('publisher', None), ('scope', 'read')), models.Q(('scope', 'read'), ('subscriber', None)), models.Q(('publisher', None), ('scope', 'manage'), ('subscriber', None)), _connector='OR'), name='api_key_owner_fits_scope')],
            },
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('status', 'INACTIVE'), _negated=True), fields=['event_type', 'header_filter_string'], name='subscription_matching'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(fields=['changed_in'], name='subscription_changed'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('forward_headers', []), _negated=True), fields=['event_type', 'id'], name='subscription_forwarding'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('script', ''), _negated=True), fields=['id'], name='subscription_scripted'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('join_mode', 'ALL')), fields=['subscriber', 'join_name'], name='subscription_joining'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('status', 'HELD')), fields=['id'], name='subscription_held'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('status', 'SHADOW')), fields=['id'], name='subscription_shadow'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('held_until__isnull', False)), fields=['held_until'], name='subscription_held_until'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('filter', ''), ('filter_identity', '')), models.Q(models.Q(('filter', ''), _negated=True), models.Q(('filter_identity', ''), _negated=True)), _connector='OR'), name='subscription_filter_has_identity'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.UniqueConstraint(fields=('subscriber', 'name'), name='subscription_name_of_a_subscriber'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('mode', 'PUSH'), ('endpoint', ''), _connector='XOR'), name='subscription_push_has_endpoint', violation_error_message='A PUSH subscription needs an endpoint; a PULL one has none.'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('dedup_mode', 'PATH'), ('dedup_path', ''), _connector='XOR'), name='subscription_dedup_has_path', violation_error_message='dedup_mode PATH needs a dedup_path; the others have none.'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('join_mode', 'NONE'), models.Q(('join_name', ''), _negated=True), _connector='XOR'), name='subscription_join_has_name', violation_error_message='A join needs a join_name; without one it stays empty.'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('join_mode', 'ALL'), _negated=True), ('mode', 'PUSH'), _connector='OR'), name='subscription_join_of_all_is_pushed', violation_error_message='A join of ALL needs a PUSH subscription.'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('status', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='subscription_ends_holding'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('mode', 'PULL'), ('max_receives', None), _connector='OR'), name='subscription_pull_counts_receives', violation_error_message='max_receives is for PULL subscriptions.'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('mode', 'PUSH'), ('script', ''), _connector='OR'), name='subscription_pull_has_no_script', violation_error_message='A PULL subscription has no script: nothing is sent to it.'),
        ),
        migrations.AddIndex(
            model_name='signingsecret',
            index=models.Index(fields=['changed_in'], name='secret_changed'),
        ),
        migrations.AddIndex(
            model_name='signingsecret',
            index=models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='secret_expiring'),
        ),
    ]
