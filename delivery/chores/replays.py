"""The duty of making the deliveries of replays."""

from datetime import datetime

from delivery.replays import deliver


def run_once(now: datetime) -> int:
    """Do one batch of the replay that is due longest, and return how much it was."""
    return deliver.advance(now)
