"""The list of duties: each does a short part of the work and returns how much it did."""

from datetime import datetime

from delivery.chores.duty import Duty
from delivery.incidents import watching
from delivery.mailbox import counts
from delivery.maintenance import expiry, failures, ranges, retention, traffic
from delivery.replays import deliver
from delivery.support import bulk_jobs, releases

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
