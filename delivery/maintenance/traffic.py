"""Traffic counts: accepted, delivered and failed, in rows that charts and health read.

Nothing is counted on the path of a message. A duty of the chores counts the messages published and
the deliveries settled since the mark, adds them to the rows of that time, and moves the mark in the
same transaction, under its lock. So everything is counted once, whichever process dies and however
many machines there are.

All counted rows must be committed. Rows get their time before their commit, so the count stays
behind: by five seconds, and behind the beginning of every writing transaction, whose rows have
later times. That time is queried before the counting statement, which therefore sees all
transactions that ended in between. Only rows stored by a transaction of more than a minute are
missed, as their time may already be counted. The exact figures are those of the history.

After a time without chores the count catches up in intervals of a minute, over at most a day; it
skips times without traffic.

A delivery that a person resends is counted each time it is settled. Deliveries decided by a person
or waiting for a decision (CANCELLED, IN_DOUBT) are neither delivered nor failed, nor are those that
were not to be sent (REDUNDANT, DUPLICATE).
"""

from datetime import datetime, timedelta

from delivery.database import queries
from delivery.maintenance.durations import BOUNDS_MS
from delivery.states import FAILURES, Status

# Each turn costs a commit and updated rows, so several seconds are counted together.
TURN = timedelta(seconds=10)
PIECE = timedelta(minutes=1)
LAG = timedelta(seconds=5)
LONGEST_LAG = timedelta(minutes=1)
FURTHEST = timedelta(days=1)

_FAILED = [status.value for status in FAILURES if status != Status.IN_DOUBT]


def count() -> bool:
    """Count the next interval by the database's clock; return whether there was one.

    Call it in a transaction, under the duty's lock.
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
