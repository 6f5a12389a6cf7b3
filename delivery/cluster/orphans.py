"""Ending a process with the parent. Stdlib only, for code before Django's start."""

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals, *, parent: int | None = None) -> Callable[[], None]:
    """Return a preexec_fn: the kernel sends the new process this signal when the parent dies.

    The parent is the calling process unless another is given.

    Start such a process from the main thread: the kernel watches the forking thread, not the whole
    parent. Does nothing on systems other than Linux.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    parent = os.getpid() if parent is None else parent

    def arrange() -> None:
        if prctl is None:
            return
        prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # The parent died before the signal was set.
            os._exit(1)

    return arrange
