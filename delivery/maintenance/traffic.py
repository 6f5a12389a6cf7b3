"""Counting traffic: what was accepted, delivered and failed, in rows that charts and health are drawn from.

Nothing is counted on the way of a message. A duty of the chores counts what was published and settled since the mark, adds it
to the rows of that time, and moves the mark in the same transaction, under its lock: so whoever dies, and however
many machines there are, everything is counted once.

What is counted must be committed, all of it. Rows get their time before their commit, so the count stays behind: five seconds, and
behind the beginning of every transaction that is writing, for what it writes is of a later time. That is asked before
the statement that counts, which therefore sees what ended in between. Only what a transaction of more than a minute
stores is missed, as its time may be counted by then. The exact figures are those of the history.

After a time without chores the count catches up in pieces of a minute, at most over a day; it skips over the time in which nothing happened.

A delivery that a person has sent again is counted each time it is settled. What was decided by a person, or is for one to
decide (CANCELLED, IN_DOUBT), is neither delivered nor failed, nor is what was not to be sent (REDUNDANT, DUPLICATE).
"""

from datetime import datetime, timedelta

from delivery.database import queries
from delivery.maintenance.durations import BOUNDS_MS
from delivery.states import FAILURES, Status

# Each turn costs a commit and rows that are written again, so many moments are counted together.
TURN = timedelta(seconds=10)
PIECE = timedelta(minutes=1)
LAG = timedelta(seconds=5)
LONGEST_LAG = timedelta(minutes=1)
FURTHEST = timedelta(days=1)

_FAILED = [status.value for status in FAILURES if status != Status.IN_DOUBT]


def count() -> bool:
    """Count the next piece of time, by the database's clock, and return whether there was one.

    Call it in a transaction, under the lock of the duty.
    """
    since, until = _due()
    if until - since < TURN:
        return False
    _forget()
    queries.planned_rows(
        "count_traffic", {"since": since, "until": until, "failures": _FAILED, "bounds": list(BOUNDS_MS)}
    )
    return True


def _due() -> tuple[datetime, datetime]:
    asked = {"longest": PIECE, "furthest": FURTHEST, "lag": LAG, "longest_lag": LONGEST_LAG}
    ((since, until),) = queries.planned_rows("due_traffic", asked)
    return since, until


def _forget() -> None:
    queries.execute("forget_traffic", {})
