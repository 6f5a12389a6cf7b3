"""Pauses that no fault explains: of a lane, and of a publisher that waits for its answer."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

from tests.support.receivers import Received
from tests.torture.oracle import Breach
from tests.torture.records import PUBLISHERS, FaultWindow, Fetched, Published

# No lane stands still longer than its fault and these seconds.
STANDSTILL_SECONDS = 10.0


def standing_still(
    lane: str,
    owed: Iterable[Published],
    received: Iterable[Received | Fetched],
    excuses: Iterable[FaultWindow],
) -> list[Breach]:
    """While deliveries wait, a pause lasts at most as long as a fault and STANDSTILL_SECONDS."""
    came = [(request.id, _came_at(request)) for request in received]
    settled_at = dict(came)
    waiting = sorted((settled_at[m.id], m.answered_at) for m in owed if m.id in settled_at)
    ends = [end for end, _ in waiting]
    # For messages settled at or after each index: since when the first of them waited.
    since = [answered for _, answered in waiting]
    for index in range(len(since) - 2, -1, -1):
        since[index] = min(since[index], since[index + 1])
    allowed = [window for window in excuses if window.lane in (None, lane)]
    findings = []
    for before, after in pairwise([0.0, *sorted(at for _, at in came)]):
        index = bisect_left(ends, after)
        if index < len(since):
            longest, at = _longest(max(before, since[index]), after, allowed)
            if longest > STANDSTILL_SECONDS:
                findings.append(
                    Breach("STOOD STILL", lane, at, f"{longest:.1f} s without a request")
                )
    return findings


def _came_at(request: Received | Fetched) -> float:
    return request.at if isinstance(request, Received) else request.answered_at


def kept_waiting(published: Iterable[Published], excuses: Iterable[FaultWindow]) -> list[Breach]:
    """A publisher gets its answer within a fault and STANDSTILL_SECONDS, over all repetitions."""
    allowed = [window for window in excuses if window.lane in (None, PUBLISHERS)]
    findings = []
    for message in published:
        longest, at = _longest(message.sent_at, message.answered_at, allowed)
        if longest > STANDSTILL_SECONDS:
            text = f"{message.id} waited {longest:.1f} s for its answer"
            findings.append(Breach("KEPT WAITING", PUBLISHERS, at, text))
    return findings


def _longest(begin: float, end: float, excuses: Iterable[FaultWindow]) -> tuple[float, float]:
    """Return the longest part of a pause that no fault explains, and when it began."""
    at, longest = begin, (0.0, begin)
    for window in sorted(excuses, key=lambda window: window.since):
        if window.until <= at or window.since >= end:
            continue
        longest = max(longest, (window.since - at, at))
        at = max(at, window.until)
    return max(longest, (end - at, at))
