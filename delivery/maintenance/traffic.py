"""Traffic counts: accepted, delivered and failed, in rows for charts and health.

A duty counts all rows since the mark, and moves the mark in the same transaction. It stays behind
every writing transaction, so all counted rows are committed. `maintenance/README.md` has the
details.
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


def count_next_piece() -> bool:
    """Count the next interval by the database's clock; return whether an interval was counted.

    Call it in a transaction, under the duty's lock.
    """
    since, until = _due()
    if until - since < TURN:
        return False
    _forget()
    queries.planned_rows(
        "count_traffic",
        {"since": since, "until": until, "failures": _FAILED, "bounds": list(BOUNDS_MS)},
    )
    return True


def _due() -> tuple[datetime, datetime]:
    parameters = {"longest": PIECE, "furthest": FURTHEST, "lag": LAG, "longest_lag": LONGEST_LAG}
    ((since, until),) = queries.planned_rows("due_traffic", parameters)
    return since, until


def _forget() -> None:
    queries.execute_statement("forget_traffic", {})
