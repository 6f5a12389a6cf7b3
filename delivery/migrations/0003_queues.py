"""QUEUE messages: the group of a delivery, and the lanes of the queue senders."""

from typing import Any

from django.db import migrations, models

QUEUE_SENDERS = 5

# In which lanes the deliveries of a subscription may be: its subscriber's, or those of the queue senders.
SUBSCRIPTION_LANE = """
CREATE VIEW delivery_subscriptionlane AS
SELECT subscription.id AS subscription_id, lane.id AS lane_id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
WHERE event_type.kind <> 'QUEUE'
UNION ALL
SELECT subscription.id, lane.id
FROM subscriptions_subscription subscription
JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
JOIN delivery_lane lane ON lane.kind = event_type.kind
WHERE event_type.kind = 'QUEUE'
"""


def make_lanes(apps: Any, _: Any) -> None:
    """As many as the setting is by default; `provision` makes more if it says so."""
    lanes = apps.get_model("delivery", "Lane").objects
    lanes.bulk_create(lanes.model(kind="QUEUE", number=number) for number in range(QUEUE_SENDERS))


class Migration(migrations.Migration):

    dependencies = [
        ('delivery', '0002_tables_for_a_queue'),
        ('subscriptions', '0002_built_in_policies'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='queue_group',
            field=models.SmallIntegerField(help_text='Of a QUEUE message: the group it belongs to, counted from 0.', null=True),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(condition=models.Q(('queue_group__isnull', False), ('status', 'DELIVERED')), fields=('message', 'queue_group'), name='delivery_one_of_a_queue_group'),
        ),
        migrations.RunPython(make_lanes, migrations.RunPython.noop),
        migrations.RunSQL(SUBSCRIPTION_LANE, "DROP VIEW delivery_subscriptionlane"),
    ]
