"""The watch over a run: it ends an unresponsive process, and a run with a silent storage.

An interruption is an exception in the main thread. It cannot enter native code, such as a storage's
client waiting for the server, and a step may swallow it. So a separate thread waits for the step's
end after a stop, a signal or a loss of the database, and calls `force` after GRACE_SECONDS. It uses
no database, which may be stuck as well.

The thread also asks the archive's storage from time to time. A storage silent to any process of the
run ends it: otherwise a run on a dead mount would never end.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from delivery.history.archive.storage import StorageProbe
from delivery.pipeline.interrupts import Interrupts
from delivery.pipeline.progress import Interruption, RunProgress

LOOK_SECONDS = 0.1
# A stop takes two seconds at most: REPORT_SECONDS until it is seen, these, and the forced end.
GRACE_SECONDS = 0.8
# A storage at work answers late.
PROBE_SECONDS, SILENT_SECONDS = 20.0, 30.0


class StorageWatch:
    """Asks the storage every PROBE_SECONDS, without waiting for the answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._probe: StorageProbe | None = None
        self._next_at = time.monotonic() + PROBE_SECONDS

    def silence(self) -> str:
        """Return the error of a storage silent for SILENT_SECONDS, or nothing.

        An error as answer does not count: the step gets it, too.
        """
        if self._probe is None:
            # A machine without room for another process asks later.
            if time.monotonic() >= self._next_at:
                with suppress(OSError):
                    self._probe = StorageProbe(self._url)
        elif self._probe.has_answer:
            self.close()
        elif self._probe.seconds > SILENT_SECONDS:
            return str(self._probe.silent(SILENT_SECONDS))
        return ""

    def close(self) -> None:
        """End the question, if it is open, and ask the next question later."""
        if self._probe is not None:
            self._probe.close()
        self._probe, self._next_at = None, time.monotonic() + PROBE_SECONDS


class RunWatch:
    """Watches the step of a run; `silence` is the error if the storage's silence has ended it."""

    def __init__(self, progress: RunProgress, interrupts: Interrupts, *, archive_url: str) -> None:
        self.silence = ""
        self._progress = progress
        self._interrupts = interrupts
        self._archive_url = archive_url
        self._is_over = threading.Event()

    @contextmanager
    def watching(self, force: Callable[[], None] | None) -> Iterator[None]:
        """Watch during the block; `force` has to end the process. Without it, only interrupt."""
        thread = threading.Thread(target=self._watch, args=[force], name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _watch(self, force: Callable[[], None] | None) -> None:
        storage = StorageWatch(self._archive_url)
        try:
            while not (self._is_ending or self._is_over.wait(LOOK_SECONDS)):
                self.silence = storage.silence()
                if self.silence:
                    self._progress.interrupt(Interruption.SILENT)
        finally:
            storage.close()
        if not self._is_over.wait(GRACE_SECONDS) and force is not None:
            force()

    @property
    def _is_ending(self) -> bool:
        return self._progress.interruption is not None or self._interrupts.arrived() is not None
