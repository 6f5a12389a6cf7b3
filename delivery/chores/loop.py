"""The loop of the chores: duties, one after another, until Inturn stops.

Several machines may run it: a duty is done by whoever takes its lock first. While there is something to do it
goes on at once, else it looks every other second, and more rarely at the slow duties. These may take long, because
they wait for the archive or remove much; they have a thread of their own, so that they delay no failure report.
"""

import time
from collections.abc import Sequence
from threading import Thread

from django.db import connection
from django.utils import timezone

from delivery.chores.duties import QUICK, SLOW
from delivery.chores.duty import Duty
from delivery.cluster.loops import connections_of, pause
from delivery.cluster.stopping import stopping
from delivery.database.connections import LETS_GO_OF_VANISHED

QUICK_POLL_SECONDS = 2.0
SLOW_POLL_SECONDS = 3.0
# Our locks go soon when we are killed, and when this machine vanishes.
_SETTINGS = LETS_GO_OF_VANISHED + "SET client_connection_check_interval = '500ms'"


def run() -> None:
    """Do duties until Inturn stops."""
    slow = Thread(target=_attend, args=(SLOW, SLOW_POLL_SECONDS), name="slow chores", daemon=True)
    slow.start()
    _attend(QUICK, QUICK_POLL_SECONDS)
    slow.join()


def _attend(duties: Sequence[Duty], poll_seconds: float) -> None:
    """Do these duties on a connection that is this thread's."""
    with connections_of("chores", settings=_SETTINGS):
        try:
            while not stopping.is_set():
                if not sum([duty.attend(timezone.now()) for duty in duties]):
                    pause(time.monotonic() + poll_seconds)
        finally:
            connection.close()
