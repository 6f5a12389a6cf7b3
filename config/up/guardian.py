"""The guardian, which ends the processes of `up` if `up` itself is killed. Stdlib only.

It is a small process in a session of its own. Only the supervisor holds the pipe of the guardian's
standard input open, so end of file means: the supervisor is gone, whatever killed it. After an
orderly stop nothing is left to end.
"""

import signal
import sys

from config.up import processes

GRACE_SECONDS = 3


def guard(run: str) -> None:
    """Wait for the end of standard input, then end the processes of this run."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    processes.end_processes(
        lambda: processes.marked_processes(run),
        [(signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)],
    )


if __name__ == "__main__":
    guard(sys.argv[1])
