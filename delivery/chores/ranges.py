"""The duty of making partitions ahead of the messages."""

from datetime import datetime

from delivery.maintenance import ranges


def run_once(_: datetime) -> int:
    """Make the next range of messages if it is time, and return 0 when it is not."""
    return ranges.make_ahead()
