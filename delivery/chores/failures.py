"""The duty of telling failures."""

from datetime import datetime

from delivery.maintenance import failures

BATCH = 200


def run_once(_now: datetime) -> int:
    """Tell the oldest failures that are not told yet, and return how many notices are gone."""
    return failures.tell(limit=BATCH)
