"""Traffic, counted beforehand."""

import django.db.models.deletion
from django.db import migrations, models

# Each of these rows is added to again and again while its time lasts: room on each page lets that stay on it.
STORAGE = """
ALTER TABLE delivery_trafficminute SET (fillfactor = 50);
ALTER TABLE delivery_subscriptiontraffic SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000
);
ALTER TABLE delivery_trafficmark SET (
    fillfactor = 10, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500
);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0006_mailboxes_and_retention'),
        ('subscriptions', '0005_mailboxes'),
    ]

    operations = [
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
            name='SubscriptionTraffic',
            fields=[
                ('pk', models.CompositePrimaryKey('subscription', 'at', 'step', blank=True, editable=False, primary_key=True, serialize=False)),
                ('subscription', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='subscriptions.subscription')),
                ('at', models.DateTimeField()),
                ('step', models.SmallIntegerField()),
                ('delivered', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='subscription_traffic_by_time')],
            },
        ),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
    ]
