"""QUEUE messages: the group of a delivery, and the lanes of the queue senders."""

from typing import Any

from django.db import migrations, models

QUEUE_SENDERS = 5


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
    ]
