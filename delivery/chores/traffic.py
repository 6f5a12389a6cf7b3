"""The duty of counting traffic."""

from datetime import datetime

from delivery.maintenance import traffic


def run_once(_now: datetime) -> int:
    """Count a piece of time, by the database's clock; return 0 when the next is not due."""
    return int(traffic.count())
