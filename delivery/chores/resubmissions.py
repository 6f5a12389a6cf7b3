"""The duty of working off resubmissions."""

from datetime import datetime

from delivery import resubmission


def run_once(now: datetime) -> int:
    """Do one batch of the resubmission that is due longest, and return how much it was."""
    return resubmission.advance(now)
