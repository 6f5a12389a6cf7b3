"""The phases of an attempt, for its trace: queue, resolving, connecting, TLS, first byte.

They are measured only while traces are exported. An attempt on a kept connection has no phases of
connecting. The first phase, the queue, ends when the attempt starts.
"""

import time
from contextvars import ContextVar

from delivery.senders.clock import seconds_since_boot

# Moments of an attempt.
RESOLVING, RESOLVED = "resolving", "resolved"
CONNECTING, CONNECTED, SECURED = "connecting", "connected", "secured"
SENT, ANSWERED = "sent", "answered"


class Phases:
    """The moments of an attempt, by `time.perf_counter`; of a repeated moment the last counts.

    The attempt starts now, and could have started at `due_at`, in seconds since boot, if known.
    """

    __slots__ = ("_moments", "_queued")

    def __init__(self, *, due_at: float | None) -> None:
        self._moments: dict[str, float] = {}
        # A lane's pause ends a moment before the pause in its row, which begins at the commit.
        self._queued = {} if due_at is None else {"queue": max(seconds_since_boot() - due_at, 0.0)}

    def mark(self, moment: str) -> None:
        self._moments[moment] = time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Return the duration of each phase that was completed."""
        moments = self._moments
        connecting = RESOLVED if RESOLVED in moments else CONNECTING
        pairs = {
            "resolve": (RESOLVING, RESOLVED),
            "connect": (connecting, CONNECTED),
            "tls": (CONNECTED, SECURED),
            "first_byte": (SENT, ANSWERED),
        }
        return self._queued | {
            name: moments[end] - moments[begin]
            for name, (begin, end) in pairs.items()
            if begin in moments and end in moments
        }


_phases: ContextVar[Phases] = ContextVar("phases")


def begin_phases(*, due_at: float | None) -> Phases:
    """Measure the phases of the attempt that this task starts now; it was due at `due_at`."""
    phases = Phases(due_at=due_at)
    _phases.set(phases)
    return phases


def mark_phase(moment: str) -> None:
    """Note a moment of this task's attempt, if its phases are measured."""
    phases = _phases.get(None)
    if phases is not None:
        phases.mark(moment)
