"""Stopping runs: at once while they wait, by whoever runs them otherwise; what they were for ends with them."""

import pytest
from django.utils import timezone

from delivery.models import RUN_ENDED, PipelineRun, ReplayState, RunState, Step
from delivery.pipeline import runs, stop
from delivery.pipeline.runs import Ending
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


def test_one_that_waits_is_cancelled_at_once() -> None:
    run = rows.run()
    assert stop(run, actor="ann")
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert run.ended_at is not None
    assert "Stopped by ann." in run.log


def test_whoever_runs_one_is_told() -> None:
    run = rows.run(state=RunState.RUNNING)
    assert stop(run, actor="ann")
    run.refresh_from_db()
    assert (run.state, run.is_stopping) == (RunState.RUNNING, True)


@pytest.mark.parametrize("state", RUN_ENDED)
def test_one_that_has_ended_stays_as_it_is(state: RunState) -> None:
    run = rows.run(state=state)
    assert not stop(run, actor="ann")
    assert PipelineRun.objects.get(pk=run.pk).log == ""


def test_the_replay_of_a_cancelled_selection_is_cancelled() -> None:
    replay = rows.replay()
    assert stop(rows.run(Step.REPLAY, options={"replay": replay.pk}), actor="ann")
    replay.refresh_from_db()
    assert replay.state == ReplayState.CANCELLED


def test_the_replay_of_a_failed_selection_fails_for_the_same_reason() -> None:
    replay = rows.replay()
    run = rows.run(Step.REPLAY, RunState.RUNNING, options={"replay": replay.pk})
    assert runs.end(run, Ending(state=RunState.FAILED, error="no room"), now=timezone.now())
    replay.refresh_from_db()
    assert (replay.state, replay.error) == (ReplayState.FAILED, "no room")


def test_one_that_another_took_for_dead_cannot_be_ended_again() -> None:
    run = rows.run(state=RunState.FAILED, error="killed")
    assert not runs.end(run, Ending(state=RunState.DONE), now=timezone.now())
    assert PipelineRun.objects.get(pk=run.pk).error == "killed"


def test_one_that_a_person_stops_is_not_given_back() -> None:
    run = rows.run(state=RunState.RUNNING)
    stop(run, actor="ann")
    assert not runs.give_back(run, why="Inturn stops.")


def test_one_that_is_given_back_waits_as_if_it_had_not_begun() -> None:
    run = rows.run(state=RunState.RUNNING, done=8, count=10, doing="exporting")
    assert runs.give_back(run, why="Inturn stops.")
    run.refresh_from_db()
    assert (run.state, run.started_at, run.done, run.count, run.doing) == (
        RunState.WAITING,
        None,
        0,
        None,
        "",
    )
