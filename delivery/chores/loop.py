"""The loop of the chores: runs the duties in turn until Inturn stops.

Several machines may run it: the machine with a duty's lock does the duty. While there is work the
loop continues at once; otherwise it polls every two seconds, and the slow duties every three. The
slow duties may take long, because they wait for the archive or remove many rows; they run in a
separate thread, so they do not delay failure reports. Mail and chat have threads of their own, too,
because they wait for servers of others; a duty starts those while any alerts are due.
"""

from collections.abc import Sequence
from threading import Thread

from django.db import connection
from django.utils import timezone

from delivery.chores.duties import QUICK, SLOW
from delivery.chores.duty import Duty
from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents.alerts import AlertThreads, are_due

QUICK_POLL_SECONDS = 2.0
SLOW_POLL_SECONDS = 3.0
# The server releases our locks soon after this process is killed or this machine vanishes.
_SETTINGS = TCP_TIMEOUTS + "SET client_connection_check_interval = '500ms'"


def run_chores() -> None:
    """Run duties until Inturn stops."""
    slow = Thread(
        target=_run_duties, args=(SLOW, SLOW_POLL_SECONDS), name="slow chores", daemon=True
    )
    slow.start()
    alerts = AlertThreads()
    _run_duties((*QUICK, Duty("alerts", alerts.begin, is_due=are_due)), QUICK_POLL_SECONDS)
    slow.join()
    alerts.wait()


def _run_duties(duties: Sequence[Duty], poll_seconds: float) -> None:
    """Run these duties on a connection of this thread."""
    with connections_of("chores", settings=_SETTINGS):
        try:
            while not stopping.is_set():
                if not sum([duty.run_part(timezone.now()) for duty in duties]):
                    stopping.wait(poll_seconds)
        finally:
            connection.close()
