"""The duty of removing what is old enough."""

from datetime import datetime

from delivery.maintenance import retention


def run_once(now: datetime) -> int:
    """Do a batch of the pass that is under way or due, and return 0 when there is none."""
    return retention.advance(now)
