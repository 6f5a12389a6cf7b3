"""The pipeline's steps in a benchmark: the users' commands, observed together with their JVMs."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tests.bench.children import child

LOOK_EVERY_SECONDS = 0.05


class BenchStep:
    """A running step. `megabytes` is the sampled peak resident memory of the JVM."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.megabytes = 0.0
        self._name = name
        self._process = process

    def is_under_way(self) -> bool:
        """Sample once, after a moment; raise RuntimeError if the step has failed."""
        time.sleep(LOOK_EVERY_SECONDS)
        for pid in _javas(self._process.pid):
            self.megabytes = max(self.megabytes, _peak_megabytes(pid))
        if self._process.poll():
            raise RuntimeError(f"`history {self._name}` failed: see above.")
        return self._process.returncode is None


@contextmanager
def begun(name: str) -> Iterator[BenchStep]:
    """Start `manage.py history NAME` in a separate process; end it on leaving."""
    # Keep the command's output out of the results.
    with child(str(settings.BASE_DIR / "manage.py"), "history", name, stdout=sys.stderr) as process:
        yield BenchStep(name, process)


def _javas(pid: int) -> Iterator[int]:
    """Yield the JVMs among the descendants of a process; an ended process has none."""
    try:
        children = [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
        if Path(f"/proc/{pid}/comm").read_text().strip() == "java":
            yield pid
    except OSError:
        return
    for found in children:
        yield from _javas(found)


def _peak_megabytes(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
