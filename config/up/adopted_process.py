"""A child process forked by another process."""

import os
import signal
import subprocess
from contextlib import suppress

from config.up import processes


class AdoptedProcess:
    """What parts use of subprocess.Popen, for an adopted child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit code; raise subprocess.TimeoutExpired if it does not end in time."""
        if timeout is None:
            return self._reap(0)
        if not processes.wait_until(lambda: self.poll() is not None, seconds=timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.returncode

    def terminate(self) -> None:
        # Not reaped, the number cannot be another process's.
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode
