"""A run in a separate process: its end frees all memory, including that of Spark's JVM."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

from django.conf import settings

from delivery.cluster.orphans import end_with_parent

MANAGE = str(settings.BASE_DIR / "manage.py")
# An unresponsive run ends by itself in less (see `watch`), unless the whole process is stuck.
STOP_SECONDS = 2.0


class Child:
    """The process `manage.py history run <id>`, with our environment and output."""

    def __init__(self, run_id: int) -> None:
        """Start the process.

        Call it from the main thread: the child gets a signal when the thread ends.
        """
        self.run_id = run_id
        self._process = subprocess.Popen(
            [sys.executable, MANAGE, "history", "run", str(run_id)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # Otherwise it would continue after we are killed, and nothing would stop it.
            preexec_fn=end_with_parent(signal.SIGTERM),
        )

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.poll()

    def stop(self) -> bool:
        """Terminate the process in order, so it returns the run; kill it after STOP_SECONDS.

        The group is killed with it, and the JVM ends with it. Returns whether it had to be killed.
        """
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return True
        return False

    def kill(self) -> None:
        """Kill the process and the group, and wait for the end, but not for a stuck kernel's."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
