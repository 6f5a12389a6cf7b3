"""The pipeline's steps in a benchmark: each the command that a person gives, watched together with its JVM."""

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
    """A step under way. `megabytes` is the most memory that its JVM has had resident, as far as anybody looked."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.megabytes = 0.0
        self._name = name
        self._process = process

    def is_under_way(self) -> bool:
        """Look once, after a moment; raises RuntimeError when the step has failed."""
        time.sleep(LOOK_EVERY_SECONDS)
        for pid in _javas(self._process.pid):
            self.megabytes = max(self.megabytes, _peak_megabytes(pid))
        if self._process.poll():
            raise RuntimeError(f"`history {self._name}` failed: see above.")
        return self._process.returncode is None


@contextmanager
def begun(name: str) -> Iterator[BenchStep]:
    """Begin `manage.py history NAME` in a process of its own; it is ended on leaving if it has not."""
    # What it says must not stand among results.
    with child(str(settings.BASE_DIR / "manage.py"), "history", name, stdout=sys.stderr) as process:
        yield BenchStep(name, process)


def _javas(pid: int) -> Iterator[int]:
    """The JVMs among the descendants of a process; of one that has ended there are none."""
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
