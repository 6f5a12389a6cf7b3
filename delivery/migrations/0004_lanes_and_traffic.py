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
# Kind, seconds until it opens, seconds until it closes, bound, on.
INCIDENT_RULES = [
    ("LANE", 300, 60, None, True),
    ("ENDPOINT", 300, 60, None, True),
    ("URL", 0, 60, None, True),
    ("RETRYING", 300, 60, 20, True),
    ("FAILURES", 0, 600, 1, True),
    ("IN_DOUBT", 0, 10, 120, True),
    ("OLDEST", 300, 60, 600, True),
    ("BACKLOG", 60, 300, 100_000, True),
    ("VERIFY", 0, 0, None, True),
    ("PIPELINE", 0, 0, 2, True),
    ("DISK", 60, 300, 10, True),
    ("DATABASE", 60, 300, 100, False),
]


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


def make_incident_rules(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    rule = apps.get_model("delivery", "IncidentRule")
    rule.objects.bulk_create(
        rule(kind=kind, after_seconds=after, quiet_seconds=quiet, bound=bound, is_on=is_on)
        for kind, after, quiet, bound, is_on in INCIDENT_RULES
    )


class Migration(migrations.Migration):
    dependencies = [("delivery", "0003_settling")]

    operations = [
        migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text()),
        migrations.RunPython(make_lanes),
        migrations.RunPython(make_shards),
        migrations.RunPython(make_schedules),
        migrations.RunPython(make_incident_rules),
    ]
