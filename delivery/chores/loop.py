"""The loop of the chores: runs the duties one after another until Inturn stops.

Several machines may run it: the machine that takes a duty's lock first does it. While there is work
the loop continues at once; otherwise it polls every two seconds, and the slow duties every three.
The slow duties may take long, because they wait for the archive or remove many rows; they run in a
thread of their own, so that they do not delay failure reports. Mail and chat have threads of their
own, too, because they wait for servers of others.
"""

import time
from collections.abc import Sequence
from functools import partial
from threading import Thread

from django.db import connection
from django.utils import timezone

from delivery.chores.duties import QUICK, SLOW
from delivery.chores.duty import Duty
from delivery.cluster.keeper import run_until_stopped
from delivery.cluster.loops import connections_of, pause_until
from delivery.cluster.stopping import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents.alerts import send_alerts
from delivery.models import AlertChannel

QUICK_POLL_SECONDS = 2.0
SLOW_POLL_SECONDS = 3.0
# The server releases our locks soon after this process is killed or this machine vanishes.
_SETTINGS = TCP_TIMEOUTS + "SET client_connection_check_interval = '500ms'"


def run_chores() -> None:
    """Run duties until Inturn stops."""
    others = [
        Thread(target=_run_duties, args=(SLOW, SLOW_POLL_SECONDS), name="slow chores", daemon=True),
        *(_alerting(channel) for channel in AlertChannel),
    ]
    for thread in others:
        thread.start()
    _run_duties(QUICK, QUICK_POLL_SECONDS)
    for thread in others:
        thread.join()


def _alerting(channel: AlertChannel) -> Thread:
    return Thread(
        target=run_until_stopped,
        args=(partial(send_alerts, channel),),
        name=f"alerts {channel}",
        daemon=True,
    )


def _run_duties(duties: Sequence[Duty], poll_seconds: float) -> None:
    """Run these duties on a connection of this thread."""
    with connections_of("chores", settings=_SETTINGS):
        try:
            while not stopping.is_set():
                if not sum([duty.run_part(timezone.now()) for duty in duties]):
                    pause_until(time.monotonic() + poll_seconds)
        finally:
            connection.close()
