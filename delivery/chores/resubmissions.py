"""The duty of working off resubmissions."""

from datetime import datetime

from delivery.support import bulk_jobs


def run_once(now: datetime) -> int:
    """Do one batch of the resubmission that is due longest, and return how much it was."""
    return bulk_jobs.advance(now)
