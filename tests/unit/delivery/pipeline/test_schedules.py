"""Schedules: each fires once when due, keeps its interval, and creates no unnecessary run."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django import Settings

from delivery.models import PipelineRun, PipelineSchedule, RunState, Step
from delivery.pipeline import schedules
from tests.races.transactions import unfinished
from tests.unit.delivery.pipeline import rows

DAY = timedelta(days=1)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def due(*steps: Step, at: datetime | None = None) -> datetime:
    """Make only these steps due, and return since when."""
    PipelineSchedule.objects.exclude(step__in=steps).update(is_on=False)
    moment = at or timezone.now() - timedelta(minutes=5)
    PipelineSchedule.objects.filter(step__in=steps).update(next_at=moment)
    return moment


@pytest.mark.django_db
class TestFiring:
    def test_after_the_installation_there_is_time_to_look_around(self) -> None:
        installed_at = MigrationRecorder.Migration.objects.get(
            app="delivery", name="0004_lanes_and_traffic"
        ).applied
        assert schedules.request_due_runs(installed_at + timedelta(minutes=14)) == 0
        assert schedules.request_due_runs(installed_at + timedelta(minutes=16)) == 3

    def test_due_steps_are_requested_in_their_order(self) -> None:
        due(Step.VERIFY, Step.ROLLUP, Step.EXPORT)
        assert schedules.request_due_runs(timezone.now()) == 3
        asked = PipelineRun.objects.order_by("id").values_list("step", "state", "asked_by")
        assert list(asked) == [(step, "WAITING", "") for step in ("EXPORT", "ROLLUP", "VERIFY")]

    def test_a_schedule_fires_once_and_keeps_its_interval(self) -> None:
        since = due(Step.EXPORT)
        assert [schedules.request_due_runs(timezone.now()) for _ in range(3)] == [1, 0, 0]
        assert PipelineSchedule.objects.get(step=Step.EXPORT).next_at == since + timedelta(hours=1)

    def test_a_disabled_schedule_does_not_fire(self) -> None:
        due()
        assert schedules.request_due_runs(timezone.now()) == 0

    def test_a_step_with_an_open_run_needs_no_second(self) -> None:
        since = due(Step.EXPORT)
        rows.run(Step.EXPORT)
        assert schedules.request_due_runs(timezone.now()) == 1
        assert PipelineRun.objects.count() == 1
        assert PipelineSchedule.objects.get(step=Step.EXPORT).next_at > since

    def test_a_schedule_fires_although_its_last_run_was_killed(self) -> None:
        due(Step.EXPORT)
        rows.run(Step.EXPORT, RunState.RUNNING)
        schedules.request_due_runs(timezone.now())
        states = PipelineRun.objects.order_by("id").values_list("state", flat=True)
        assert list(states) == [RunState.FAILED, RunState.WAITING]

    def test_after_a_failed_check_of_everything_the_next_checks_at_least_the_new_rows(self) -> None:
        rows.run(Step.VERIFY, RunState.FAILED, options={"whole": True})
        assert scheduled_options() == {}
        rows.run(Step.VERIFY, RunState.DONE, result={"since": timezone.now().isoformat()})
        assert scheduled_options() == {"whole": True}

    def test_a_verify_checks_everything_once_in_so_many_days(self, settings: Settings) -> None:
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_whole_days=7)
        assert scheduled_options() == {"whole": True}
        # Asked for a moment later than today's, seven days ago.
        week = timezone.now() - timedelta(days=7) + timedelta(minutes=1)
        rows.run(Step.VERIFY, RunState.DONE, asked_at=week, result={"since": None})
        rows.run(Step.VERIFY, RunState.FAILED)
        rows.run(Step.VERIFY, RunState.DONE, result={"since": week.isoformat()})
        assert scheduled_options() == {"whole": True}
        rows.run(Step.VERIFY, RunState.DONE, asked_at=week + DAY, result={"since": None})
        assert scheduled_options() == {}
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_whole_days=0)
        PipelineRun.objects.all().delete()
        assert scheduled_options() == {}


def scheduled_options() -> dict[str, Any]:
    """Return the options of the verify run that the schedule requests now, and end the run."""
    due(Step.VERIFY)
    schedules.request_due_runs(timezone.now())
    run = PipelineRun.objects.get(state=RunState.WAITING)
    options: dict[str, Any] = run.options
    run.delete()
    return options


@pytest.mark.django_db(transaction=True)
def test_of_two_machines_that_look_at_once_one_creates_the_run() -> None:
    due(Step.EXPORT)
    with unfinished(lambda: schedules.request_due_runs(timezone.now())):
        assert schedules.request_due_runs(timezone.now()) == 0
    assert schedules.request_due_runs(timezone.now()) == 0
    assert PipelineRun.objects.count() == 1


@pytest.mark.parametrize(
    ("now", "next_at"),
    [
        (NOON, NOON + timedelta(minutes=60)),
        (NOON + timedelta(minutes=59), NOON + timedelta(minutes=60)),
        (NOON + timedelta(minutes=60), NOON + timedelta(minutes=120)),
        (NOON + timedelta(days=3, minutes=1), NOON + timedelta(days=3, minutes=60)),
    ],
)
def test_missed_intervals_are_skipped(now: datetime, next_at: datetime) -> None:
    assert schedules.next_after(NOON, every_minutes=60, now=now) == next_at
