"""HELD: held deliveries are not sent, and a released lane may catch up at a rate."""

from importlib import import_module

from django.db import migrations, models

make_permissions = import_module('delivery.migrations.0005_roles').make_permissions

# The subscriptions that senders may send to: ACTIVE, with an ACTIVE subscriber, unless all sending
# is HELD; without a running cancellation of their backlog, and with a URL that the circuit breaker
# has not disabled, unless a probe is due. The view reads only subscribers that are not ACTIVE, by
# the index subscriber_held, which is empty while none is held.
SENDABLE = """
CREATE OR REPLACE VIEW delivery_sendable AS
SELECT subscription.id, subscription.subscriber_id, subscription.event_type_id
FROM subscriptions_subscription subscription
JOIN subscriptions_policy policy ON policy.id = subscription.policy_id
WHERE subscription.status = 'ACTIVE' AND subscription.cancellation_id IS NULL
    AND NOT EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD')
    AND NOT EXISTS (
        SELECT
        FROM subscriptions_subscriber subscriber
        WHERE subscriber.id = subscription.subscriber_id AND subscriber.status <> 'ACTIVE'
    ) AND NOT (
        policy.breaks_circuit AND EXISTS (
            SELECT
            FROM delivery_urlhealth health
            WHERE health.url = subscriptions_url(subscription.endpoint)
                AND (health.state = 'FROZEN' OR health.next_probe_at > now())
        )
    )
"""


def extend_roles(apps, schema_editor):
    """Let Administrators hold all sending, and the other roles see that it is held."""
    alias = schema_editor.connection.alias
    made = make_permissions(apps, alias)
    rights = {name for name in made if name.endswith('_installation')}
    for role, names in {
        'Administrators': rights,
        'Support': {'subscriptions.view_installation'},
        'Auditors': {'subscriptions.view_installation'},
    }.items():
        group, _ = apps.get_model('auth', 'Group').objects.using(alias).get_or_create(name=role)
        group.permissions.add(*(made[name] for name in sorted(names)))


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0006_journal_of_errors_to'),
        ('subscriptions', '0008_held'),
    ]

    operations = [
        migrations.AddField(
            model_name='lane',
            name='catch_up_rate',
            field=models.FloatField(help_text='Deliveries per second, at most, while it catches up on held deliveries.', null=True),
        ),
        migrations.AddField(
            model_name='lane',
            name='catch_up_to',
            field=models.BigIntegerField(help_text='The last delivery that may have been held; null: it does not catch up.', null=True),
        ),
        migrations.AlterField(
            model_name='journalentry',
            name='kind',
            field=models.CharField(choices=[('UNMATCHED', 'a message without a subscription'), ('BLOCKED', 'a lane is blocked'), ('RESUMED', 'a lane flows again'), ('IN_DOUBT', 'a delivery may have been sent'), ('RETRIED', 'a person requested a retry'), ('SKIPPED', 'a person skipped a message'), ('CANCELLED', 'a person cancelled deliveries'), ('RESUBMITTED', 'a person sent deliveries again'), ('ACTIVATED', 'made ACTIVE: a subscription, a subscriber, or all sending'), ('DEACTIVATED', 'made INACTIVE: a subscription or a subscriber'), ('HELD', 'HELD: a subscription, a subscriber, or all sending'), ('FAILED', "a delivery's attempts are used up"), ('SUSPENDED', 'a lane is suspended'), ('DISABLED', 'a URL is disabled'), ('FROZEN', 'a URL is frozen'), ('ENABLED', 'a URL is enabled again'), ('RESOLVED', 'a person decided a delivery in doubt'), ('DUPLICATE', 'a duplicate message'), ('AMBIGUOUS', 'several subscriptions qualified for a SYNC message'), ('CALLBACK', 'an endpoint answered by callback'), ('EXPIRED', 'expired deliveries'), ('REPLAYED', 'a person replayed messages'), ('TESTED', 'a person sent a test message'), ('ERRORS_TO', 'the named recipient of a failure does not exist'), ('REMOVED', 'retention removed messages')], max_length=11),
        ),
        migrations.AddIndex(
            model_name='lane',
            index=models.Index(condition=models.Q(('catch_up_to__isnull', False)), fields=['id'], name='lane_catching_up'),
        ),
        migrations.AddConstraint(
            model_name='lane',
            constraint=models.CheckConstraint(condition=models.Q(('catch_up_to__isnull', True), ('catch_up_rate__isnull', False), _connector='XOR'), name='lane_catches_up_at_a_rate'),
        ),
        migrations.RunSQL(SENDABLE, migrations.RunSQL.noop),
        migrations.RunPython(extend_roles, migrations.RunPython.noop),
    ]
