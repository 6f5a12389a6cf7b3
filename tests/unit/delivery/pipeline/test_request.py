"""Requests for runs: one open run of a step that processes all new rows, others any number."""

import pytest
from django.utils import timezone

from delivery.models import RunState, Step
from delivery.pipeline import RunOpenError, request_run
from delivery.pipeline.cleanup import KILLED
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db


def test_a_run_waits_for_its_turn() -> None:
    now = timezone.now()
    run = request_run(Step.REPORT, options={"format": "csv"}, actor="ann", now=now)
    run.refresh_from_db()
    assert (run.state, run.asked_by, run.options) == (RunState.WAITING, "ann", {"format": "csv"})
    assert run.asked_at == now


@pytest.mark.parametrize("step", [Step.EXPORT, Step.ROLLUP, Step.VERIFY])
def test_a_second_one_is_refused_while_the_first_waits(step: Step) -> None:
    first = request_run(step, now=timezone.now())
    with pytest.raises(
        RunOpenError, match=rf"{step.label} {first.pk} was requested at .* and waits"
    ) as refused:
        request_run(step, now=timezone.now())
    assert refused.value.run == first


def test_a_second_one_is_refused_while_the_first_is_under_way() -> None:
    first = rows.run(state=RunState.RUNNING)
    said = (
        f"export {first.pk} has been running since {first.started_at:%Y-%m-%d %H:%M:%S} UTC; "
        "it continues by itself."
    )
    with rows.held(first), pytest.raises(RunOpenError) as refused:
        request_run(Step.EXPORT, now=timezone.now())
    assert str(refused.value) == said


def test_a_killed_run_does_not_prevent_a_new_request() -> None:
    killed = rows.run(state=RunState.RUNNING)
    assert request_run(Step.EXPORT, now=timezone.now()).state == RunState.WAITING
    killed.refresh_from_db()
    assert (killed.state, killed.error) == (RunState.FAILED, KILLED)


def test_other_steps_and_ended_runs_do_not_prevent_a_request() -> None:
    for state in (RunState.DONE, RunState.FAILED, RunState.CANCELLED):
        rows.run(state=state)
    request_run(Step.ROLLUP, now=timezone.now())
    assert request_run(Step.EXPORT, now=timezone.now()).state == RunState.WAITING


@pytest.mark.parametrize("step", [Step.REPLAY, Step.REPORT])
def test_several_replays_and_reports_may_wait(step: Step) -> None:
    assert request_run(step, now=timezone.now()) != request_run(step, now=timezone.now())
