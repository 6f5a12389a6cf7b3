"""A duty, done by one process at a time in the whole installation.

A turn is one transaction and holds the duty's advisory lock until the end: the lock cannot outlive
the process, the connection, or the uncommitted work. A process killed in the middle of a turn has
changed nothing.
"""

import logging
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from delivery.models.lane import DUTY_LOCKS
from subscriptions.database_away import is_away
from subscriptions.values.schedules import doubling_pause

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 60.0
AWAY_SECONDS = 1.0


def _always(_: datetime) -> bool:
    return True


@dataclass(slots=True)
class Duty:
    """A named duty of the chores.

    `run_once` does a short part and returns how much it did, 0 if there was nothing to do. `is_due`
    is called first, outside the transaction and without the lock; only if it returns True,
    `run_once` is called in a transaction, with the time. Most turns have nothing to do, and to plan
    the statements of `run_once` takes longer than this query. A duty that fails pauses, longer each
    time; the other duties continue.
    """

    name: str
    run_once: Callable[[datetime], int]
    is_due: Callable[[datetime], bool] = _always
    failures: int = 0
    _paused_until: float = 0.0

    def run_part(self, now: datetime) -> int:
        """Do a part, unless another process holds the duty's lock; return how much was done."""
        if time.monotonic() < self._paused_until:
            return 0
        done = 0
        try:
            if self.is_due(now):
                with transaction.atomic():
                    done = self.run_once(now) if self._is_ours() else 0
        except Exception as error:  # noqa: BLE001 - a bug in a duty must not end other duties
            self._fail(error)
            return 0
        self.failures = 0
        return done

    def _fail(self, error: Exception) -> None:
        if is_away(error):
            log.warning("duty broken off", extra={"duty": self.name, "error": str(error)})
            # The next turn opens a new connection.
            connection.close()
            self._pause(AWAY_SECONDS)
            return
        log.error("duty failed", exc_info=error, extra={"duty": self.name})
        self.failures += 1
        self._pause(doubling_pause(1.0, failures=self.failures, longest=LONGEST_PAUSE_SECONDS))

    def _is_ours(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [self.key])
            row = cursor.fetchone()
        return row is not None and bool(row[0])

    @property
    def key(self) -> int:
        return DUTY_LOCKS << 32 | zlib.crc32(self.name.encode())

    def _pause(self, seconds: float) -> None:
        self._paused_until = time.monotonic() + seconds
