"""The duty of settling what is past its time."""

from datetime import datetime

from delivery.mailbox import counts
from delivery.maintenance import expiry

# What one transaction settles for each cause: its rows are locked meanwhile.
BATCH = 5_000


def run_once(_now: datetime) -> int:
    """Settle a batch of what is past its time, by the database's clock, and return how many were settled."""
    counts.forget_rates()
    return expiry.settle_overdue(limit=BATCH)
