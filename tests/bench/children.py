"""The processes of a benchmark: a receiver, senders and bare loops; each is ended in any case."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.drained import Drained
from tests.bench.publishers import PublishLoad
from tests.bench.receiver import ARRIVALS, CLIENTS, COUNT, TALLY

STOP_SECONDS = 40


class ReceiverProcess:
    """The benchmark's handle of the receiver's process."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.url = f"http://127.0.0.1:{port}"

    def tally(self) -> dict[str, Any]:
        tally: dict[str, Any] = self._ask("GET", TALLY)
        return tally

    def arrivals(self) -> list[tuple[int, float]]:
        """Return the message's id and the moment of each request.

        The monotonic clock is the same for all processes of a machine.
        """
        return [(id, at) for id, at in self._ask("GET", ARRIVALS)]

    def clients(self) -> dict[int, int]:
        """Return the number of requests by the client's port."""
        return {int(port): count for port, count in self._ask("GET", CLIENTS).items()}

    def count(self) -> int:
        """Return the requests since the last reset; this costs the receiver next to nothing."""
        return int(self._ask("GET", COUNT)["requests"])

    def reset(self) -> None:
        self._ask("DELETE", COUNT)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str) -> Any:
        self._connection.request(method, path)
        return json.loads(self._connection.getresponse().read())


@contextmanager
def receiver() -> Iterator[ReceiverProcess]:
    with (
        _port("-m", "tests.bench.receiver") as port,
        closing(ReceiverProcess(port)) as receiver,
    ):
        yield receiver


@contextmanager
def senders(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        yield [stack.enter_context(child("-m", "tests.bench.sender")) for _ in range(count)]


@contextmanager
def chain(url: str, *, subscribers: int) -> Iterator[int]:
    """Run a bare chain to the receiver; yield the port of the chain's server."""
    with ExitStack() as stack:
        ports = [
            stack.enter_context(_port("-m", "tests.bench.bare_chain", *arguments, str(subscribers)))
            for arguments in (["server"], ["sender", url])
        ]
        yield ports[0]


@contextmanager
def _port(*arguments: str) -> Iterator[int]:
    """Run Python with these arguments; yield the port printed once it is ready."""
    with child(*arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with process.stdout:
            yield int(process.stdout.readline())


def run_bare(loop: str, url: str, *, concurrency: int, messages: int) -> None:
    """Run a bare loop to the end."""
    command = [sys.executable, "-m", "tests.bench.bare", loop, url, str(concurrency), str(messages)]
    subprocess.run(command, check=True)


def run_publishers(load: PublishLoad) -> Drained:
    """Run publishers to the end, and return their report."""
    return measured("-m", "tests.bench.publishers", json.dumps(asdict(load)))


def measured(*arguments: str) -> Drained:
    """Run Python with these arguments, and return the report."""
    with child(*arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with process.stdout:
            return Drained.read(process.stdout.read())


def peak_megabytes(process: subprocess.Popen[bytes]) -> float:
    """Return the peak resident memory of the process so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


@contextmanager
def child(
    *arguments: str, changed: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with these arguments; terminate it on leaving, and kill it if it does not stop.

    It inherits the environment, with the variables in `changed`.
    """
    assignments = [f"{name}={value}" for name, value in (changed or {}).items()]
    process: subprocess.Popen[bytes] = subprocess.Popen(
        ["env", *assignments, sys.executable, *arguments], **options
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
