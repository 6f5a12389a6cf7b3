"""The observations of a torture run from outside.

All times are of this process's monotonic clock, in seconds.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.receivers import Received

# The lane of a window that excuses waiting publishers.
PUBLISHERS = "publishers"
# The size of a lane's log around a moment.
LOGGED_REQUESTS = 30
LOGGED_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A message whose publisher got an answer; repetitions with its key are one message.

    `sent_at` is before the first request, `answered_at` after the answer that accepted it.
    """

    id: str
    event: str
    key: str
    sent_at: float
    answered_at: float


@dataclass(slots=True, kw_only=True)
class Fetched:
    """A message that a mailbox client got, and the client's report about it."""

    id: str
    asked_at: float
    answered_at: float
    visibility: float
    released_at: float | None = None
    acknowledged_at: float | None = None

    def ends(self) -> Iterable[tuple[str, float | None]]:
        """The client's reports with their moments."""
        return ("released", self.released_at), ("acknowledged", self.acknowledged_at)


@dataclass(frozen=True, slots=True)
class FaultWindow:
    """A time in which a lane may stand still, or a subscription does not match.

    Lane None means every lane.
    """

    since: float
    until: float
    lane: str | None
    reason: str


def end_of_fault(crash: float, faults: Iterable[FaultWindow]) -> float:
    """Return when the fault of a crash ended, before which nobody may be able to record its doubt.

    A machine that was killed is started again by its fault, and one that does much else starts
    slowly.
    """
    ends = [
        fault.until
        for fault in faults
        if fault.lane is None and fault.since <= crash <= fault.until
    ]
    return max(ends, default=crash)


@dataclass(frozen=True, slots=True)
class Woken:
    """A sender that lost its session while stopped, from its waking to its reconnection.

    `ports` are the local ports of its connections to receivers.
    """

    since: float
    until: float
    ports: frozenset[int]


@dataclass(slots=True)
class Journal:
    """The events and faults of a run, in order; written by several threads.

    `crashes` are the moments after which a delivery of each lane may be in doubt.
    """

    began: float = field(default_factory=time.monotonic)
    events: list[tuple[float, str | None, str]] = field(default_factory=list)
    excuses: list[FaultWindow] = field(default_factory=list)
    inactive: list[FaultWindow] = field(default_factory=list)
    crashes: list[float] = field(default_factory=list)
    # The names of the faults of the run.
    faults: list[str] = field(default_factory=list)
    # The moments at which the clock was set.
    steps: list[float] = field(default_factory=list)
    woken: list[Woken] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, text: str, *, lane: str | None = None) -> float:
        now = time.monotonic()
        with self._lock:
            self.events.append((now, lane, text))
        return now

    def crash(self, text: str) -> float:
        """Note that processes or connections end without a warning."""
        now = self.note(text)
        with self._lock:
            self.crashes.append(now)
        return now

    def excuse(
        self, since: float, reason: str, *, lane: str | None = None, until: float | None = None
    ) -> None:
        """Excuse lanes that stand still from that moment, until now unless `until` is set."""
        with self._lock:
            self.excuses.append(
                FaultWindow(since, time.monotonic() if until is None else until, lane, reason)
            )

    def log_of(self, lane: str, came: Iterable[Received | Fetched], *, around: float) -> list[str]:
        """Return the log of a lane around a moment: every event, and the nearest requests."""
        described = sorted(map(_described, came), key=lambda line: abs(line[0] - around))
        lines = described[:LOGGED_REQUESTS]
        lines += [
            (at, text)
            for at, of, text in self.events
            if of in (None, lane) and abs(at - around) < LOGGED_SECONDS
        ]
        return [f"{at - self.began:9.3f}  {text}" for at, text in sorted(lines)]


def _described(came: Received | Fetched) -> tuple[float, str]:
    if isinstance(came, Fetched):
        ends = [
            f"{name} {at - came.answered_at:+.3f} s" for name, at in came.ends() if at is not None
        ]
        text = (
            f"  {came.id} asked for "
            f"{came.answered_at - came.asked_at:.3f} s before, {', '.join(ends)}"
        )
        return came.answered_at, text
    marked = f" {came.redelivery}" if came.redelivery else ""
    reported = f"delivery {came.delivery} attempt {came.attempt}{marked} from port {came.port}"
    return came.at, f"  {came.id} {reported} -> {came.status}"
