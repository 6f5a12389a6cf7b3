"""The duties, and the loop of them in turn until Inturn stops.

Several machines may run it: the machine with a duty's lock does the duty. While there is work the
loop continues at once; otherwise it polls every two seconds, and the slow duties every three. The
slow duties may take long, because they wait for the archive or remove many rows; they run in a
separate thread, so they do not delay failure reports. Mail and chat have threads of their own, too,
because they wait for servers of others; a duty starts those while any alerts are due.
"""

from collections.abc import Sequence
from datetime import datetime
from threading import Thread

from django.db import connection
from django.utils import timezone

from delivery.cluster.named_connections import connections_of
from delivery.cluster.stop_event import stopping
from delivery.database.connections import TCP_TIMEOUTS
from delivery.incidents import watching
from delivery.incidents.alerts import AlertThreads, are_due
from delivery.mailbox import counts
from delivery.maintenance import expiry, ranges, retention, traffic
from delivery.maintenance.duty import Duty
from delivery.publishing import failures
from delivery.support import bulk_jobs, releases
from delivery.support.replays import deliver

QUICK_POLL_SECONDS = 2.0
SLOW_POLL_SECONDS = 3.0
# The server releases our locks soon after this process is killed or this machine vanishes.
_SETTINGS = TCP_TIMEOUTS + "SET client_connection_check_interval = '500ms'"
# Deliveries settled by a transaction for each cause; their rows stay locked until it ends.
EXPIRY_BATCH = 5_000
FAILURES_BATCH = 200


def release_held(_: datetime) -> int:
    return releases.release_due() + releases.end_catching_up()


def settle_overdue(_: datetime) -> int:
    return expiry.settle_overdue(limit=EXPIRY_BATCH)


def report_failures(_: datetime) -> int:
    return failures.publish_notices(limit=FAILURES_BATCH)


def count_traffic(_: datetime) -> int:
    is_counted = traffic.count_next_piece()
    if is_counted:
        counts.forget_rates()
    return int(is_counted)


def make_ranges(_: datetime) -> int:
    return ranges.make_ahead()


QUICK = (
    Duty("releases", release_held, is_due=releases.is_due),
    Duty("expiry", settle_overdue, is_due=expiry.is_due),
    Duty("failures", report_failures, is_due=failures.is_due),
    Duty("resubmissions", bulk_jobs.advance_job, is_due=bulk_jobs.is_due),
    Duty("traffic", count_traffic),
    Duty("incidents", watching.advance_incidents),
)
# These wait for the archive or remove many rows.
SLOW = (
    Duty("replays", deliver.advance_replay, is_due=deliver.is_due),
    Duty("retention", retention.advance_pass, is_due=retention.is_due),
    Duty("ranges", make_ranges, is_due=ranges.is_due),
)
DUTIES = (*QUICK, *SLOW)


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
