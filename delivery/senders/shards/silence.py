"""Detection of frozen senders: the server waits for them, and has had no statement for too long.

The server's own time-outs do not end all of their sessions. A session whose client stopped in the
middle of a pipeline, between two statements or before the end of it, counts neither as idle nor as
in a transaction. So senders watch each other, by their own clocks. Each executes a statement once a
second or more often.
"""

from collections.abc import Collection
from datetime import datetime

# More than the lease of `delivery.senders.shards.connection`: the frozen sender begins no attempt
# when it wakes up.
FROZEN_SECONDS = 6.0
# A sender that has not looked for so long was frozen itself, and cannot judge the others.
GAP_SECONDS = 2.0

# A session: the backend's process id, and the time of the last change of state.
Waiting = tuple[int, datetime]


class Silence:
    """One sender's observations of sessions that wait for their clients."""

    def __init__(self) -> None:
        self._since: dict[Waiting, float] = {}
        self._checked_at = float("-inf")

    def frozen(self, waiting: Collection[Waiting], *, now: float) -> list[Waiting]:
        """Return the sessions that have waited too long at `now`, by `seconds_since_boot`."""
        previous = self._since if now - self._checked_at <= GAP_SECONDS else {}
        self._checked_at = now
        self._since = {session: previous.get(session, now) for session in waiting}
        return [session for session, since in self._since.items() if now - since >= FROZEN_SECONDS]
