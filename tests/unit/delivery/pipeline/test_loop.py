"""The choice of the next run: the longest waiting; dependent steps run one at a time."""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import PipelineRun, PipelineSchedule, RunState, Step
from delivery.pipeline.loop import MOST_STARTS, Loop, is_turn_due, next_run
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


def test_the_longest_waiting_run_is_next() -> None:
    rows.run(Step.REPORT, RunState.DONE)
    first = rows.run(Step.VERIFY)
    rows.run(Step.EXPORT)
    assert next_run() == first


def test_dependent_steps_wait_for_those_of_another_machine() -> None:
    rows.run(Step.EXPORT, RunState.RUNNING)
    rows.run(Step.ROLLUP)
    assert next_run() is None
    report = rows.run(Step.REPORT)
    assert next_run() == report


def test_a_report_delays_no_other_run() -> None:
    rows.run(Step.REPORT, RunState.RUNNING)
    rollup = rows.run(Step.ROLLUP)
    assert next_run() == rollup


def test_a_turn_is_due_while_a_run_is_open_or_a_schedule_is_due() -> None:
    now = timezone.now()
    PipelineSchedule.objects.update(next_at=now + timedelta(minutes=1))
    assert not is_turn_due(now)
    assert is_turn_due(now + timedelta(minutes=1))
    PipelineSchedule.objects.update(is_on=False)
    assert not is_turn_due(now + timedelta(minutes=1))
    rows.run(Step.REPORT, RunState.DONE)
    assert not is_turn_due(now)
    rows.run(Step.REPORT)
    assert is_turn_due(now)


def test_a_turn_is_due_while_a_run_may_have_been_killed() -> None:
    PipelineSchedule.objects.update(is_on=False)
    rows.run(Step.REPORT, RunState.RUNNING)
    assert is_turn_due(timezone.now())


def test_a_run_that_cannot_start_fails_with_its_reason() -> None:
    run, loop = rows.run(), Loop()
    for _ in range(MOST_STARTS):
        run.refresh_from_db()
        assert run.state == RunState.WAITING
        loop._judge(run.pk, 1)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "exit code 1" in run.error


def test_a_run_that_started_does_not_count_as_a_failed_start() -> None:
    waits, loop = rows.run(), Loop()
    done = rows.run(Step.REPORT, RunState.DONE)
    for _ in range(MOST_STARTS):
        loop._judge(waits.pk, 1)
        loop._judge(done.pk, 0)
    assert PipelineRun.objects.get(pk=waits.pk).state == RunState.WAITING


def test_the_loop_imports_neither_spark_nor_arrow() -> None:
    code = (
        "import django, sys; django.setup(); import delivery.pipeline.loop;"
        "print(sorted({'pyspark', 'pyarrow', 'py4j'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
