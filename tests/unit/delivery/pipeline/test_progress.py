"""The progress of a run: its row has a step's reports, and a request to end interrupts it."""

import re
from collections.abc import Iterator

import psycopg
import pytest

from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import stop_run
from delivery.pipeline.interrupts import interruptible
from delivery.pipeline.progress import Interruption, RunProgress
from tests.system.operation.installation import eventually
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db(transaction=True)


class ProgressLines:
    """A Progress that records its calls."""

    def __init__(self) -> None:
        self.reported: list[object] = []

    def doing(self, text: str) -> None:
        self.reported.append(text)

    def advance(self, done: int, count: int | None) -> None:
        self.reported.append((done, count))


@pytest.fixture
def run() -> PipelineRun:
    return rows.run(Step.VERIFY, RunState.RUNNING)


@pytest.fixture
def database() -> Iterator[psycopg.Connection]:
    with rows.connected() as connection:
        yield connection


def test_the_row_shows_the_progress_while_the_step_runs(
    run: PipelineRun, database: psycopg.Connection
) -> None:
    progress = RunProgress(run.pk, database)

    def is_reported() -> bool:
        run.refresh_from_db()
        return (run.doing, run.done, run.count) == ("reading", 10, 20)

    with progress.followed():
        progress.doing("reading")
        progress.advance(10, 20)
        eventually(is_reported, "the row has it")


def test_the_last_progress_is_not_lost(run: PipelineRun, database: psycopg.Connection) -> None:
    progress = RunProgress(run.pk, database)
    with progress.followed():
        progress.doing("reading")
        progress.doing("writing " + "x" * 500)
        progress.advance(20, None)
    run.refresh_from_db()
    assert (run.done, run.count) == (20, None)
    assert run.doing.startswith("writing x")
    assert re.fullmatch(r"\d\d:\d\d:\d\d reading\n\d\d:\d\d:\d\d writing x+\n", run.log)


def test_a_log_keeps_its_end(run: PipelineRun, database: psycopg.Connection) -> None:
    progress = RunProgress(run.pk, database)
    with progress.followed():
        for number in range(10):
            progress.doing(f"{number} " + "x" * 20_000)
    run.refresh_from_db()
    assert len(run.log) == 100_000
    assert "9 xxx" in run.log


def test_other_events_are_reported_at_once(run: PipelineRun, database: psycopg.Connection) -> None:
    reported = ProgressLines()
    progress = RunProgress(run.pk, database, shown=[reported])
    progress.doing("reading")
    progress.advance(1, 2)
    assert reported.reported == ["reading", (1, 2)]


def interrupted(progress: RunProgress) -> RunProgress:
    """Follow the run until it interrupts this thread."""
    with (
        interruptible() as interrupts,
        pytest.raises(KeyboardInterrupt),
        interrupts.raising(),
        progress.followed(),
    ):
        eventually(lambda: False, "interrupted")
    return progress


def test_a_step_without_progress_is_interrupted(
    run: PipelineRun, database: psycopg.Connection
) -> None:
    stop_run(run, actor="ann")
    assert interrupted(RunProgress(run.pk, database)).interruption == Interruption.PERSON


def test_a_run_presumed_dead_is_interrupted(run: PipelineRun, database: psycopg.Connection) -> None:
    PipelineRun.objects.filter(pk=run.pk).update(state=RunState.FAILED, ended_at=run.asked_at)
    assert interrupted(RunProgress(run.pk, database)).interruption == Interruption.LOST


def test_a_lost_connection_interrupts(run: PipelineRun, database: psycopg.Connection) -> None:
    database.close()
    assert interrupted(RunProgress(run.pk, database)).interruption == Interruption.LOST
