"""Ending in order: within a block, SIGTERM does what Ctrl-C does, and a second signal does not cut the first one short."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """`number` is the signal that came, None if none did."""

    def __init__(self) -> None:
        self.number: signal.Signals | None = None

    def listen(self) -> None:
        """Take the signals from whoever else has taken them, such as PySpark Ctrl-C, unless one came already."""
        if self.number is None:
            for each in _NUMBERS:
                signal.signal(each, self.interrupt)

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        for each in _NUMBERS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt


def _tells_news(record: logging.LogRecord) -> bool:
    """Whether a line is worth logging: Spark's bridge tells with a traceback that it was interrupted, by the root logger."""
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Raise KeyboardInterrupt in the block, at most once, for SIGINT and SIGTERM. In the main thread."""
    interrupts = Interrupts()
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    interrupts.listen()
    root = logging.getLogger()
    root.addFilter(_tells_news)
    try:
        yield interrupts
    finally:
        root.removeFilter(_tells_news)
        for number, kept in before.items():
            signal.signal(number, kept)
