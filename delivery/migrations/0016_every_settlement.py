"""Every settlement is kept until it is archived: what a person ends is kept whole, and counted on its delivery.

Rows that are there already knew only how many attempts an export may have archived. They stay what they were (`is_amended`).
"""

from django.db import migrations, models

REMEMBER = """
CREATE OR REPLACE FUNCTION delivery_remember_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery_earliersettlement (
        delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
        message_id, subscription_id, queue_group, callback_id, replay_id, is_amended, ended_by, ended_at
    )
    VALUES (
        OLD.id, OLD.settled_at, OLD.status, OLD.attempts, OLD.attempts_before, OLD.settled_before, OLD.redelivery,
        OLD.reason, OLD.receive_count, OLD.message_id, OLD.subscription_id, OLD.queue_group, OLD.callback_id, OLD.replay_id,
        NEW.settled_at IS NOT NULL AND NEW.settled_before = OLD.settled_before, pg_current_xact_id()::text, clock_timestamp()
    );
    RETURN NULL;
END
$$;
"""
FORGET = """
CREATE OR REPLACE FUNCTION delivery_remember_settlement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery_earliersettlement (delivery_id, settled_at, attempts, ended_by, ended_at)
    VALUES (OLD.id, OLD.settled_at, OLD.attempts, pg_current_xact_id()::text, clock_timestamp());
    RETURN NULL;
END
$$;
"""

# Each is in it once in every snapshot: the trigger writes in the transaction that changes the delivery.
SETTLEMENTS = """
CREATE VIEW delivery_settlement AS
SELECT
    id AS delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
    message_id, subscription_id, queue_group, callback_id, replay_id, true AS stands
FROM delivery_delivery
WHERE settled_at IS NOT NULL
UNION ALL
SELECT
    delivery_id, settled_at, status, attempts, attempts_before, settled_before, redelivery, reason, receive_count,
    message_id, subscription_id, queue_group, callback_id, replay_id, false
FROM delivery_earliersettlement
WHERE NOT is_amended;
"""

STATUSES = [
    ('PENDING', 'Pending'),
    ('IN_FLIGHT', 'In Flight'),
    ('DELIVERED', 'Delivered'),
    ('REJECTED', 'Rejected'),
    ('3xxNOTSUPPORTED', '3xxNOTSUPPORTED'),
    ('REDUNDANT', 'Redundant'),
    ('FAILED', 'Failed'),
    ('IN_DOUBT', 'In Doubt'),
    ('EXPIRED', 'Expired'),
    ('CANCELLED', 'Cancelled'),
    ('DUPLICATE', 'Duplicate'),
]


def earlier(name, field):
    return migrations.AddField(model_name='earliersettlement', name=name, field=field)


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0015_history_read_by_hour'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='settled_before',
            field=models.IntegerField(db_default=0, default=0),
        ),
        earlier('status', models.CharField(choices=STATUSES, default='', max_length=15)),
        earlier('attempts_before', models.IntegerField(default=0)),
        earlier('settled_before', models.IntegerField(default=0)),
        earlier('redelivery', models.CharField(blank=True, default='', max_length=12)),
        earlier('reason', models.TextField(blank=True, default='')),
        earlier('receive_count', models.IntegerField(default=0)),
        earlier('message_id', models.BigIntegerField(default=0)),
        earlier('subscription_id', models.BigIntegerField(default=0)),
        earlier('queue_group', models.SmallIntegerField(null=True)),
        earlier('callback_id', models.BigIntegerField(null=True)),
        earlier('replay_id', models.BigIntegerField(null=True)),
        earlier('is_amended', models.BooleanField(default=True)),
        migrations.AddIndex(
            model_name='earliersettlement',
            index=models.Index(
                condition=models.Q(('is_amended', False)), fields=['settled_at'], name='earlier_settlement_at'
            ),
        ),
        migrations.RunSQL(REMEMBER, FORGET),
        migrations.RunSQL(SETTLEMENTS, 'DROP VIEW delivery_settlement'),
    ]
