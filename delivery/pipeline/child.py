"""A run in a process of its own: its memory, Spark's JVM among it, is the system's again when it has ended."""

import signal
import subprocess
import sys
from pathlib import Path

from delivery.cluster.orphans import end_with_parent

MANAGE = str(Path(__file__).resolve().parents[2] / "manage.py")
# Spark ends what it is at; the cluster itself has 15 s.
STOP_SECONDS = 8.0


class Child:
    """`manage.py history run <id>`, with our environment and output."""

    def __init__(self, run_id: int) -> None:
        """Call it from the main thread: it is told when that ends."""
        self.run_id = run_id
        self._process = subprocess.Popen(
            [sys.executable, MANAGE, "history", "run", str(run_id)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # Otherwise it would go on when we are killed, and nobody stop it.
            preexec_fn=end_with_parent(signal.SIGTERM),
        )

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Let it end in order, which gives its run back; what takes too long is killed. Its JVM ends with it."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
