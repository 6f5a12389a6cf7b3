"""The phases of an attempt, for its trace: resolving, connecting, TLS, waiting for the answer.

They are measured only while traces are exported. An attempt on a kept connection has no phases of
connecting.
"""

import time
from contextvars import ContextVar

# Moments of an attempt.
RESOLVING, RESOLVED = "resolving", "resolved"
CONNECTING, CONNECTED, SECURED = "connecting", "connected", "secured"
SENT, ANSWERED = "sent", "answered"


class Phases:
    """The moments of one attempt, by `time.perf_counter`; of a repeated one the last counts."""

    __slots__ = ("_moments",)

    def __init__(self) -> None:
        self._moments: dict[str, float] = {}

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
        return {
            name: moments[end] - moments[begin]
            for name, (begin, end) in pairs.items()
            if begin in moments and end in moments
        }


_phases: ContextVar[Phases] = ContextVar("phases")


def begin_phases() -> Phases:
    """Measure the phases of the attempt that this task makes now."""
    phases = Phases()
    _phases.set(phases)
    return phases


def mark_phase(moment: str) -> None:
    """Note a moment of this task's attempt, if its phases are measured."""
    phases = _phases.get(None)
    if phases is not None:
        phases.mark(moment)
