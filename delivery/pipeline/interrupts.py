"""Ending in order: SIGTERM does what Ctrl-C does, where a block allows it, and a second signal does not cut the first one short."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """The first signal that came: its `number`, None if none did. It raises KeyboardInterrupt only in a `raising` block."""

    def __init__(self) -> None:
        self.number: signal.Signals | None = None
        self._is_raising = False

    def listen(self) -> None:
        """Take the signals from whoever else has taken them, such as PySpark Ctrl-C, unless one came already."""
        if self.number is None:
            for each in _NUMBERS:
                signal.signal(each, self._interrupt)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let a signal raise KeyboardInterrupt in the block, also one that came before."""
        self._is_raising = True
        try:
            if self.number is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_raising = False

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.number = signal.Signals(number)
        for each in _NUMBERS:
            signal.signal(each, signal.SIG_IGN)
        if self._is_raising:
            raise KeyboardInterrupt


def _tells_news(record: logging.LogRecord) -> bool:
    """Whether a line is worth logging: Spark's bridge tells with a traceback that it was interrupted, by the root logger."""
    return record.exc_info is None or record.exc_info[0] is not KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Note the first SIGINT or SIGTERM that comes in the block, instead of ending. In the main thread."""
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
