"""The watch over a run: of a storage that is silent, and of a step that does not react."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import stop_run, watch
from delivery.pipeline.interrupts import interruptible
from delivery.pipeline.progress import Interruption, RunProgress
from delivery.pipeline.watch import RunWatch, StorageWatch
from tests.support.silent_server import silent_server
from tests.system.operation.installation import eventually
from tests.unit.delivery.pipeline import rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run() -> PipelineRun:
    return rows.run(Step.VERIFY, RunState.RUNNING)


@pytest.fixture
def progress(run: PipelineRun) -> Iterator[RunProgress]:
    with rows.connected() as connection:
        yield RunProgress(run.pk, connection)


@pytest.fixture
def silent_url() -> Iterator[str]:
    with silent_server() as server:
        yield f"gs://anonymous@bucket?scheme=http&endpoint_override={server.address}"


def test_a_storage_that_answers_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PROBE_SECONDS", 0.0)
    storage = StorageWatch(str(tmp_path / "archive"))
    for _ in range(2):
        assert storage.silence() == ""
        assert storage._probe is not None
        eventually(lambda: storage._probe is None or storage.silence(), "it has answered")
        assert storage._probe is None


def test_a_silent_storage_ends_the_step_with_its_name(
    progress: RunProgress, silent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(watch, "SILENT_SECONDS", 0.5)
    with interruptible() as interrupts:
        watching = RunWatch(progress, interrupts, archive_url=silent_url)
        with pytest.raises(KeyboardInterrupt), interrupts.raising(), watching.watching(None):
            eventually(lambda: False, "interrupted")
    assert progress.interruption == Interruption.SILENT
    assert watching.silence.startswith("The archive at gs://anonymous@bucket cannot be used: its")


def test_a_step_that_swallows_its_interruption_is_ended_by_force(
    run: PipelineRun, progress: RunProgress, tmp_path: Path
) -> None:
    forced = threading.Event()
    with interruptible() as interrupts, interrupts.raising():
        watching = RunWatch(progress, interrupts, archive_url=str(tmp_path))
        with watching.watching(forced.set), progress.followed():
            stop_run(run, actor="ann")
            with pytest.raises(KeyboardInterrupt):
                eventually(lambda: False, "interrupted")
            assert forced.wait(30)


def test_a_step_that_ends_is_not_ended_by_force(
    run: PipelineRun, progress: RunProgress, tmp_path: Path
) -> None:
    forced = threading.Event()
    with interruptible() as interrupts:
        watching = RunWatch(progress, interrupts, archive_url=str(tmp_path))
        stop_run(run, actor="ann")
        with (
            pytest.raises(KeyboardInterrupt),
            interrupts.raising(),
            watching.watching(forced.set),
            progress.followed(),
        ):
            eventually(lambda: False, "interrupted")
    assert not forced.is_set()
