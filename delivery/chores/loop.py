"""The loop that the cluster of chores runs: one bounded stint of duties, one after another.

Several machines may run it: a duty is done by whoever takes its lock first. While there is something to do it
goes on at once, else it looks about once a second.
"""

import time

from django.conf import settings
from django.utils import timezone

from delivery.chores import expiry, failures, replays, resubmissions, retention, traffic
from delivery.chores.duty import Duty
from delivery.database import LETS_GO_OF_VANISHED
from delivery.loops import POLL_SECONDS, connections_of, pause
from delivery.stopping import stopping

DUTIES = (
    Duty("expiry", expiry.run_once),
    Duty("failures", failures.run_once),
    Duty("replays", replays.run_once),
    Duty("resubmissions", resubmissions.run_once),
    Duty("retention", retention.run_once),
    Duty("traffic", traffic.run_once),
)
# Our locks go soon when we are killed, and when this machine vanishes.
_SETTINGS = LETS_GO_OF_VANISHED + "SET client_connection_check_interval = '500ms'"


def run() -> bool:
    """Do duties for as long as a stint lasts, or until Inturn stops. It is always needed."""
    deadline = time.monotonic() + settings.ENVIRONMENT.sender_stint_seconds
    with connections_of("chores", settings=_SETTINGS):
        while not stopping.is_set() and time.monotonic() < deadline:
            if not sum([duty.attend(timezone.now()) for duty in DUTIES]):
                pause(min(deadline, time.monotonic() + POLL_SECONDS))
    return True
