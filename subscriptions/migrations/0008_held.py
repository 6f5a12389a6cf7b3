"""The status HELD of subscriptions, subscribers and the installation: deliveries wait, stored."""

import django.core.validators
from django.db import migrations, models

# The effective status of a subscription: its own, its subscriber's and the installation's combined.
STANDINGS = """
CREATE VIEW subscriptions_standing AS
SELECT
    subscription.id, subscription.subscriber_id,
    CASE
        WHEN 'INACTIVE' IN (subscription.status, subscriber.status) THEN 'INACTIVE'
        WHEN 'HELD' IN (subscription.status, subscriber.status) THEN 'HELD'
        WHEN EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD') THEN 'HELD'
        ELSE 'ACTIVE'
    END AS status
FROM subscriptions_subscription subscription
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions', '0007_workfront_subscriptions'),
    ]

    operations = [
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('held_until', models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True)),
                ('catch_up_rate', models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)])),
                ('sending', models.CharField(choices=[('ACTIVE', 'ACTIVE: deliveries are sent'), ('HELD', 'HELD: nothing is sent or handed out')], default='ACTIVE', max_length=8)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.AlterModelOptions(
            name='subscription',
            options={'ordering': ['subscriber', 'position', 'id'], 'permissions': [('toggle_subscription', 'Can make subscriptions and subscribers ACTIVE, HELD and INACTIVE')]},
        ),
        migrations.RemoveIndex(
            model_name='subscription',
            name='subscription_matching',
        ),
        migrations.AddField(
            model_name='subscriber',
            name='catch_up_rate',
            field=models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)]),
        ),
        migrations.AddField(
            model_name='subscriber',
            name='held_until',
            field=models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True),
        ),
        migrations.AddField(
            model_name='subscriber',
            name='status',
            field=models.CharField(choices=[('ACTIVE', 'Active'), ('HELD', 'Held'), ('INACTIVE', 'Inactive')], default='ACTIVE', editable=False, max_length=8),
        ),
        migrations.AddField(
            model_name='subscription',
            name='catch_up_rate',
            field=models.FloatField(editable=False, help_text='HELD: deliveries per second and subscriber from the backlog, once it is released; empty: as fast as possible.', null=True, validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(1000.0)]),
        ),
        migrations.AddField(
            model_name='subscription',
            name='held_until',
            field=models.DateTimeField(editable=False, help_text='HELD: when it is released by itself; empty: by a person.', null=True),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='status',
            field=models.CharField(choices=[('ACTIVE', 'Active'), ('HELD', 'Held'), ('INACTIVE', 'Inactive')], default='ACTIVE', max_length=8),
        ),
        migrations.AddIndex(
            model_name='subscriber',
            index=models.Index(condition=models.Q(('status', 'ACTIVE'), _negated=True), fields=['id'], name='subscriber_held'),
        ),
        migrations.AddIndex(
            model_name='subscriber',
            index=models.Index(condition=models.Q(('held_until__isnull', False)), fields=['held_until'], name='subscriber_held_until'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('status', 'INACTIVE'), _negated=True), fields=['event_type', 'header_filter_string'], name='subscription_matching'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('status', 'HELD')), fields=['id'], name='subscription_held'),
        ),
        migrations.AddIndex(
            model_name='subscription',
            index=models.Index(condition=models.Q(('held_until__isnull', False)), fields=['held_until'], name='subscription_held_until'),
        ),
        migrations.AddConstraint(
            model_name='subscriber',
            constraint=models.CheckConstraint(condition=models.Q(('status', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='subscriber_ends_holding'),
        ),
        migrations.AddConstraint(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('status', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='subscription_ends_holding'),
        ),
        migrations.AddConstraint(
            model_name='installation',
            constraint=models.CheckConstraint(condition=models.Q(('pk', 1)), name='installation_is_one_row'),
        ),
        migrations.AddConstraint(
            model_name='installation',
            constraint=models.CheckConstraint(condition=models.Q(('sending', 'HELD'), models.Q(('catch_up_rate', None), ('held_until', None)), _connector='OR'), name='installation_ends_holding'),
        ),
        migrations.RunSQL(STANDINGS, 'DROP VIEW subscriptions_standing'),
    ]
