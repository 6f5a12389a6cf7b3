"""The loop that the cluster of chores runs: one bounded stint of duties, one after another.

Several machines may run it: a duty is done by whoever takes its lock first. While there is something to do it
goes on at once, else it looks about once a second.
"""

import os
import time
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils import timezone

from delivery.chores import expiry, failures, replays, resubmissions, retention, traffic
from delivery.chores.duty import Duty
from delivery.database import LETS_GO_OF_VANISHED
from delivery.stopping import stopping

DUTIES = (
    Duty("expiry", expiry.run_once),
    Duty("failures", failures.run_once),
    Duty("replays", replays.run_once),
    Duty("resubmissions", resubmissions.run_once),
    Duty("retention", retention.run_once),
    Duty("traffic", traffic.run_once),
)
POLL_SECONDS = 1.0
LOOK_SECONDS = 0.1


def run() -> bool:
    """Do duties for as long as a stint lasts, or until Inturn stops. It is always needed."""
    connection_created.connect(_arrange)
    # What is open was not arranged.
    connection.close()
    deadline = time.monotonic() + settings.ENVIRONMENT.sender_stint_seconds
    try:
        while not stopping.is_set() and time.monotonic() < deadline:
            if not sum([duty.attend(timezone.now()) for duty in DUTIES]):
                _wait(min(deadline, time.monotonic() + POLL_SECONDS))
    finally:
        connection_created.disconnect(_arrange)
    return True


def _wait(until: float) -> None:
    # Not by waiting for the event: who is killed while it waits would keep others from setting it.
    while not stopping.is_set() and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)


def _arrange(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Let our locks go soon when we are killed or this machine vanishes, and let people see whose connection it is."""
    with connection.cursor() as cursor:
        cursor.execute(LETS_GO_OF_VANISHED)
        cursor.execute("SET client_connection_check_interval = '500ms'")
        cursor.execute("SELECT set_config('application_name', %s, false)", [f"inturn chores {os.getpid()}"])
