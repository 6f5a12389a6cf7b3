"""The pace of a bulk job at a given rate: the size of the next batch, and the time it is due."""

from datetime import datetime, timedelta

_MOST_LATE = timedelta(seconds=1)


def batch_size(rate: float | None, *, most: int) -> int:
    """Return about a second's worth of deliveries, at least one; without a rate, `most`."""
    return most if rate is None else max(1, min(most, round(rate)))


def due_after(due_at: datetime, *, done: int, rate: float | None, now: datetime) -> datetime:
    """Return when the next batch is due, after a batch of `done` deliveries was due at `due_at`."""
    if rate is None:
        return now
    # A late batch is made up for, but not a long stop.
    return max(due_at, now - _MOST_LATE) + timedelta(seconds=done / rate)
