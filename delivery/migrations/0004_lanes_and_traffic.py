"""The views of lanes and endpoints, storage parameters of busy tables, and initial rows."""

from datetime import timedelta
from pathlib import Path

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

# The default of the setting; `provision` creates more if the setting is higher.
QUEUE_SENDERS = 5
SHARDS = 512
SCHEDULES = {"EXPORT": 60, "ROLLUP": 60, "VERIFY": 24 * 60}
# A new installation should not be busy with starting a JVM.
FIRST_AFTER = timedelta(minutes=15)


def make_lanes(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    lane = apps.get_model("delivery", "Lane")
    numbers = [*(("QUEUE", number) for number in range(QUEUE_SENDERS)), ("RETRY", 0), ("CALLBACK", 0)]
    lane.objects.bulk_create(lane(kind=kind, number=number, run_is_concurrent=True) for kind, number in numbers)


def make_shards(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    shard = apps.get_model("delivery", "Shard")
    shard.objects.bulk_create(shard(id=number) for number in range(SHARDS))


def make_schedules(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    schedule = apps.get_model("delivery", "PipelineSchedule")
    first = timezone.now() + FIRST_AFTER
    schedule.objects.bulk_create(
        schedule(step=step, every_minutes=minutes, next_at=first) for step, minutes in SCHEDULES.items()
    )


class Migration(migrations.Migration):
    dependencies = [("delivery", "0003_settling")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
        migrations.RunPython(make_lanes),
        migrations.RunPython(make_shards),
        migrations.RunPython(make_schedules),
    ]
