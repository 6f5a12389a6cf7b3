"""The pace of a bulk job: at so many a second, how many go in its next batch, and when that is due."""

from datetime import datetime, timedelta

_MOST_LATE = timedelta(seconds=1)


def batch_size(rate: float | None, *, most: int) -> int:
    """Return about a second's worth, but at least one; None is as fast as it goes."""
    return most if rate is None else max(1, min(most, round(rate)))


def due_after(due_at: datetime, *, done: int, rate: float | None, now: datetime) -> datetime:
    """Return when the batch is due that follows one of so many, which was due at `due_at`."""
    if rate is None:
        return now
    # What a late batch owes is made up for, but not what a long stop does.
    return max(due_at, now - _MOST_LATE) + timedelta(seconds=done / rate)
