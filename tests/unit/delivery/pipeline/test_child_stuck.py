"""A run that is stuck in native code ends at a stop nevertheless, and is as if it were killed.

It waits in Arrow's client for S3, whose server has answered the probe and then no more.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.utils import timezone

from delivery.models import PipelineRun, RunState, Step
from delivery.pipeline import locks, stop_run
from delivery.pipeline.child import Child
from delivery.pipeline.cleanup import end_orphaned_runs, return_killed_run
from tests.support.silent_server import silent_server
from tests.system.operation.installation import eventually
from tests.unit.delivery.history.commands import environment_of, history, started_history
from tests.unit.delivery.pipeline import rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

# Of the probe: whether there is an object, and whether there are some below.
PROBED = 2
# Sooner than Arrow's client gives up, which has three attempts of ten seconds.
SECONDS = 25.0


def silent_archive(address: str) -> dict[str, str]:
    return {
        "HISTORY_URL": f"s3a://bucket/inturn?scheme=http&endpoint_override={address}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@dataclass(slots=True)
class StuckRun:
    process: "subprocess.Popen[str]"

    def ended(self) -> tuple[int, str]:
        """Wait for the process's end; return its exit code and its last line."""
        _, said = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, said.splitlines()[-1]


@contextmanager
def stuck(*arguments: str, archive: Path) -> Iterator[StuckRun]:
    with silent_server(answers=PROBED) as server:
        process = started_history(*arguments, archive=archive, **silent_archive(server.address))
        try:
            eventually(
                lambda: server.is_asked.is_set() or process.poll() is not None, "it is stuck"
            )
            yield StuckRun(process)
        finally:
            process.kill()
            process.communicate()


def is_step_free() -> bool:
    with rows.connected() as other:
        return locks.is_taken(other, locks.step_lock(Step.EXPORT))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stuck_command(tmp_path: Path, number: signal.Signals) -> None:
    archive = tmp_path / "archive"
    with stuck("export", archive=archive) as run:
        run.process.send_signal(number)
        code, said = run.ended()
    made = PipelineRun.objects.get()
    assert made.state == RunState.CANCELLED
    assert code == 128 + number
    assert said == f"CommandError: {made}: interrupted; unfinished work does not count."
    eventually(is_step_free, "the lock of the step is free")
    # Nothing of it is in the way of the next run.
    history("export", archive=archive)


def test_a_person_stops_a_stuck_run(tmp_path: Path) -> None:
    with stuck("export", archive=tmp_path / "archive") as run:
        assert stop_run(PipelineRun.objects.get(), actor="ann")
        code, said = run.ended()
    made = PipelineRun.objects.get()
    assert (made.state, code) == (RunState.CANCELLED, 1)
    assert said == f"CommandError: {made}: stopped; unfinished work does not count."


def test_a_stuck_run_of_the_cluster_waits_again_when_inturn_stops(tmp_path: Path) -> None:
    made = rows.run()
    with stuck("run", str(made.pk), archive=tmp_path / "archive") as run:
        run.process.terminate()
        code, said = run.ended()
    made.refresh_from_db()
    assert (made.state, made.started_at) == (RunState.WAITING, None)
    assert code == 128 + signal.SIGTERM
    assert said == f"CommandError: {made}: interrupted; it waits again."


@pytest.fixture
def stopped_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    """A process whose run has begun, and of which not a single thread goes on."""
    with silent_server(answers=PROBED) as server:
        environment = environment_of(tmp_path / "archive") | silent_archive(server.address)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        child = Child(rows.run().pk)
        try:
            eventually(server.is_asked.is_set, "it is stuck")
            (pid,) = pids_of_runs()
            os.kill(pid, signal.SIGSTOP)
            yield child
        finally:
            child.kill()


def pids_of_runs() -> list[int]:
    own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    wanted = b"\0history\0run\0"
    return [int(id) for id in own if wanted in Path(f"/proc/{id}/cmdline").read_bytes()]


def test_the_cluster_kills_a_process_that_does_not_react_and_returns_its_run(
    stopped_process: Child,
) -> None:
    assert stopped_process.stop()
    assert return_killed_run(stopped_process.run_id)
    assert PipelineRun.objects.get().state == RunState.WAITING


def test_a_killed_run_that_a_person_stopped_is_cancelled(stopped_process: Child) -> None:
    stop_run(PipelineRun.objects.get(), actor="ann")
    stopped_process.kill()
    eventually(lambda: end_orphaned_runs(timezone.now()), "its lock is free")
    assert PipelineRun.objects.get().state == RunState.CANCELLED
