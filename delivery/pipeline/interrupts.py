"""Orderly interruption: SIGTERM acts like Ctrl-C, in the blocks open to it, and only once.

A second signal does not cut the handling of the first short.

A main thread in native code, such as a storage's client, handles no signal. So another thread sees
by `arrived` that a signal has come (see `progress`).
"""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The first signal received: `number`, None if there was none.

    It raises KeyboardInterrupt only in a `raising` block.
    """

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        self._is_raising = False
        # Python writes the number of each signal into the pipe when it comes.
        self._arriving, self.wakeup = os.pipe()
        for end in (self._arriving, self.wakeup):
            os.set_blocking(end, False)

    def listen(self) -> None:
        """Install our signal handlers, also in place of others such as PySpark's for Ctrl-C.

        Does nothing once a signal has been received.
        """
        if self.number is None:
            for each in _NUMBERS:
                signal.signal(each, self._interrupt)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in the block when a signal comes, at once if one has come."""
        self._is_raising = True
        try:
            if self.number is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_raising = False

    def arrived(self) -> signal.Signals | None:
        """Return the first signal, also if the main thread has not handled it yet."""
        if self.number is None:
            with suppress(BlockingIOError):
                for number in os.read(self._arriving, 64):
                    if number in _NUMBERS and self.number is None:
                        self.number = signal.Signals(number)
        return self.number

    def close(self) -> None:
        os.close(self._arriving)
        os.close(self.wakeup)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        for each in _NUMBERS:
            signal.signal(each, signal.SIG_IGN)
        if self._is_raising:
            raise KeyboardInterrupt


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether a record is worth logging.

    Spark's bridge logs an interruption with a traceback, by the root logger.
    """
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Record the first SIGINT or SIGTERM of the block instead of ending; main thread only."""
    interrupts = Interrupts()
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    wakeup = signal.set_wakeup_fd(interrupts.wakeup, warn_on_full_buffer=False)
    interrupts.listen()
    root = logging.getLogger()
    root.addFilter(_is_worth_logging)
    try:
        yield interrupts
    finally:
        root.removeFilter(_is_worth_logging)
        for number, kept in before.items():
            signal.signal(number, kept)
        signal.set_wakeup_fd(wakeup)
        interrupts.close()
