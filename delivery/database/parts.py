"""The parts of Inturn without a port, and whether they work: seen by their connections."""

from datetime import timedelta
from typing import Any

from delivery.database.queries import rows

# Pattern of the names of each part's connections: see `members.sql` and
# `delivery.cluster.named_connections.connections_of`.
_SESSIONS = {
    "senders": r"^inturn sender \d",
    "chores": r"^inturn chores \d",
    "history": r"^inturn pipeline \d",
}
PARTS = tuple(_SESSIONS)
# Senders send a statement each second, the other loops poll every two or three.
_AT_WORK = timedelta(seconds=15)


def session_parameters(*, is_own: bool) -> dict[str, Any]:
    """Return the parameters of `running_sessions.sql`, whose rows are a part and a count."""
    return {
        "part": list(_SESSIONS),
        "name": list(_SESSIONS.values()),
        "at_work": _AT_WORK,
        "is_own": is_own,
    }


def running_sessions() -> dict[str, int]:
    """Return how many sessions of each part work in the whole installation."""
    return dict(rows("running_sessions", session_parameters(is_own=False)))
