"""Running a run in this process, free or stopped midway.

The run is an export of an empty database, which needs no Spark.
"""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections

from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import RunOpenError, locks, run_execution, stop_run
from delivery.pipeline.run_execution import run_now, run_waiting
from tests.system.operation.installation import eventually
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db(transaction=True)

SINCE, UNTIL = "2026-11-21T00:00:00+00:00", "2026-11-22T00:00:00+00:00"


def only_run() -> PipelineRun:
    return PipelineRun.objects.get()


@contextmanager
def acting_during_run(
    act: Callable[[], object], *, held: str = "delivery_archivechunk"
) -> Iterator[None]:
    """Hold the run at a table that it needs, in its step, and then act in another thread."""

    def interfere() -> None:
        try:
            with rows.connected() as connection, connection.transaction():
                connection.execute(f"LOCK TABLE {held} IN ACCESS EXCLUSIVE MODE")
                holds.append(True)
                is_needed = is_waited_for(connection.info.backend_pid)
                eventually(is_needed, "the run needs the table")
                act()
                if held == "delivery_archivechunk":
                    eventually(lambda: not is_needed(), "the step is interrupted")
        finally:
            connections.close_all()

    holds: list[bool] = []
    with ThreadPoolExecutor(1) as thread:
        interfering = thread.submit(interfere)
        eventually(lambda: holds or interfering.done(), "the table is locked")
        yield
        interfering.result(30)


def is_waited_for(backend: int) -> Callable[[], bool]:
    def look() -> bool:
        with rows.connected() as connection:
            query = "SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
            return connection.execute(query, [backend]).fetchone() is not None

    return look


def test_a_finished_run_contains_its_result() -> None:
    run = run_now(Step.EXPORT, options={}, actor="ann").run
    assert (run.state, run.error, run.asked_by) == (RunState.DONE, "", "ann")
    assert run.result["rows"]["messages"] == 0
    assert run.seconds is not None


def test_an_ended_run_holds_no_lock() -> None:
    run = run_now(Step.EXPORT, options={}, actor="ann").run
    with rows.held(run), rows.connected() as connection:
        assert locks.is_taken(connection, locks.step_lock(Step.EXPORT))


def test_a_failed_run_stores_reason_and_traceback() -> None:
    run = run_now(Step.EXPORT, options={"nonsense": 1}, actor="ann").run
    assert run.state == RunState.FAILED
    assert "nonsense" in run.error
    assert "\n" not in run.error
    assert "Traceback" in run.log


@pytest.mark.parametrize(
    ("step", "options", "error"),
    [
        (Step.EFFECT, {"since": SINCE, "changes": []}, "run the export first."),
        (Step.REPORT, {"since": SINCE, "until": UNTIL}, "run the export first."),
        (
            Step.COMPARE,
            {"theirs": "log.csv", "key": "$$->'Body'->>'id'"},
            "run `history export` first.",
        ),
        (Step.REPLAY, {"replay": 999_999}, "Replay the messages to another subscription."),
    ],
)
def test_a_refusal_of_a_step_ends_its_run_with_the_remedy_and_no_traceback(
    step: Step, options: dict[str, Any], error: str
) -> None:
    run = run_now(step, options=options, actor="ann").run
    assert (run.state, run.result, run.log) == (RunState.FAILED, {}, "")
    assert run.error.endswith(error)


def test_a_waiting_run_is_used_instead_of_a_new_one() -> None:
    waits = rows.run()
    assert run_now(Step.EXPORT, options={}, actor="ann").run == waits
    assert only_run().state == RunState.DONE


def test_two_exports_at_once_are_refused_and_the_first_is_named() -> None:
    first = rows.run(state=RunState.RUNNING)
    with (
        rows.held(first),
        pytest.raises(RunOpenError, match=f"export {first.pk} has been running since"),
    ):
        run_now(Step.EXPORT, options={}, actor="ann")


def test_a_run_of_another_process_or_an_ended_one_is_not_run() -> None:
    for state in RunState:
        if state != RunState.WAITING:
            assert run_waiting(rows.run(Step.REPORT, state).pk) is None
    taken = rows.run(Step.REPORT)
    with rows.held(taken):
        assert run_waiting(taken.pk) is None


def test_a_process_presumed_dead_that_still_works_blocks_its_successor() -> None:
    with rows.connected() as connection:
        assert locks.is_taken(connection, locks.step_lock(Step.EXPORT))
        run = run_now(Step.EXPORT, options={}, actor="ann").run
    assert (run.state, run.log) == (RunState.FAILED, "")
    assert "run it again" in run.error


def test_a_person_stops_it_in_the_middle() -> None:
    with acting_during_run(lambda: stop_run(only_run(), actor="ben")):
        ran = run_now(Step.EXPORT, options={}, actor="ann")
    assert (ran.run.state, ran.interrupted_by) == (RunState.CANCELLED, None)
    assert "Stopped by ben." in ran.run.log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_a_persons_run(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with acting_during_run(lambda: os.kill(os.getpid(), number)):
        ran = run_now(Step.EXPORT, options={}, actor="ann")
    assert (ran.run.state, ran.interrupted_by) == (RunState.CANCELLED, number)
    assert signal.getsignal(number) is before


def test_a_signal_returns_the_clusters_run_to_waiting() -> None:
    run = rows.run()
    with acting_during_run(lambda: os.kill(os.getpid(), signal.SIGTERM)):
        ran = run_waiting(run.pk, gives_back=True)
    assert ran is not None
    assert (ran.run.state, ran.run.started_at) == (RunState.WAITING, None)
    # The server notices late that the interrupted connection is gone, which has the lock.
    eventually(lambda: run_waiting(run.pk, gives_back=True), "its lock is free again")
    assert only_run().state == RunState.DONE


def test_a_signal_while_it_begins_does_not_make_it_a_failure() -> None:
    run = rows.run()
    with acting_during_run(
        lambda: os.kill(os.getpid(), signal.SIGTERM), held="delivery_pipelinerun"
    ):
        ran = run_waiting(run.pk, gives_back=True)
    assert ran is not None
    assert (ran.run.state, ran.interrupted_by) == (RunState.WAITING, signal.SIGTERM)


def test_a_process_that_lost_its_lock_cannot_finish_the_run() -> None:
    def cut() -> None:
        with rows.connected() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = %s",
                [run_execution.APPLICATION],
            )

    with acting_during_run(cut):
        run = run_now(Step.EXPORT, options={}, actor="ann").run
    assert run.state == RunState.FAILED
    assert "lost the database" in run.error
