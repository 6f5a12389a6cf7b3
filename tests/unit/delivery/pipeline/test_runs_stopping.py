"""Stopping runs: waiting ones at once, others by the process that runs them.

The replay of a stopped selection ends with it.
"""

import pytest
from django.utils import timezone

from delivery.models import RUN_ENDED, PipelineRun, ReplayState, RunState, Step
from delivery.pipeline import runs, stop_run
from delivery.pipeline.runs import Ending
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


def test_a_waiting_run_is_cancelled_at_once() -> None:
    run = rows.run()
    assert stop_run(run, actor="ann")
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert run.ended_at is not None
    assert "Stopped by ann." in run.log


def test_a_running_process_gets_the_request_to_stop() -> None:
    run = rows.run(state=RunState.RUNNING)
    assert stop_run(run, actor="ann")
    run.refresh_from_db()
    assert (run.state, run.is_stopping) == (RunState.RUNNING, True)


@pytest.mark.parametrize("state", RUN_ENDED)
def test_an_ended_run_is_unchanged(state: RunState) -> None:
    run = rows.run(state=state)
    assert not stop_run(run, actor="ann")
    assert PipelineRun.objects.get(pk=run.pk).log == ""


def test_the_replay_of_a_cancelled_selection_is_cancelled() -> None:
    replay = rows.replay()
    assert stop_run(rows.run(Step.REPLAY, options={"replay": replay.pk}), actor="ann")
    replay.refresh_from_db()
    assert replay.state == ReplayState.CANCELLED


def test_the_replay_of_a_failed_selection_fails_for_the_same_reason() -> None:
    replay = rows.replay()
    run = rows.run(Step.REPLAY, RunState.RUNNING, options={"replay": replay.pk})
    assert runs.end_run(run, Ending(state=RunState.FAILED, error="no room"), now=timezone.now())
    replay.refresh_from_db()
    assert (replay.state, replay.error) == (ReplayState.FAILED, "no room")


def test_a_run_that_another_process_ended_cannot_be_ended_again() -> None:
    run = rows.run(state=RunState.FAILED, error="killed")
    assert not runs.end_run(run, Ending(state=RunState.DONE), now=timezone.now())
    assert PipelineRun.objects.get(pk=run.pk).error == "killed"


def test_a_run_stopped_by_a_person_does_not_return_to_waiting() -> None:
    run = rows.run(state=RunState.RUNNING)
    stop_run(run, actor="ann")
    assert not runs.give_back(run, reason="Inturn stops.")


def test_a_returned_run_waits_as_if_it_had_not_started() -> None:
    run = rows.run(state=RunState.RUNNING, done=8, count=10, doing="exporting")
    assert runs.give_back(run, reason="Inturn stops.")
    run.refresh_from_db()
    assert (run.state, run.started_at, run.done, run.count, run.doing) == (
        RunState.WAITING,
        None,
        0,
        None,
        "",
    )
