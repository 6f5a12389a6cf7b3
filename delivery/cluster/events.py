"""An event shared by a process with the forked processes, which wait for it.

A process killed while waiting for an event of `multiprocessing` prevents others from setting it.
This event is a pipe: the event is set while the pipe holds a byte, and waiting changes nothing.
"""

import os
import select
from collections.abc import Sequence


class ForkedEvent:
    """Like `threading.Event`; programs started by a process do not inherit it."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def fileno(self) -> int:
        """Return the descriptor, readable while the event is set."""
        return self._reader

    def set(self) -> None:
        try:
            os.write(self._writer, b"1")
        except BlockingIOError:
            # The pipe is full, so the event is set.
            return

    def clear(self) -> None:
        try:
            while os.read(self._reader, 4096):
                continue
        except BlockingIOError:
            return

    def is_set(self) -> bool:
        return wait_for_any([self], seconds=0)

    def wait(self, seconds: float) -> bool:
        """Wait for the event, but not longer than this; return whether it is set."""
        return wait_for_any([self], seconds=seconds)


def wait_for_any(events: Sequence[ForkedEvent], *, seconds: float) -> bool:
    """Wait for any of these events, but not longer than this; return whether any is set."""
    poll = select.poll()
    for event in events:
        poll.register(event.fileno(), select.POLLIN)
    return bool(poll.poll(max(seconds, 0.0) * 1000))
