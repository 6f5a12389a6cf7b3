"""Answers that reach nobody: a receiver's fault began as it accepted the request, and its connection was cut."""

from collections.abc import Iterable, Sequence

from tests.support.receivers import Received
from tests.torture.records import FaultWindow

UNHEARD = ("the receiver refuses connections", "SIGSTOP of")
UNHEARD_SECONDS = 0.4


def unheard_moments(faults: Iterable[FaultWindow]) -> list[float]:
    """Return the moments around which an answer may reach nobody."""
    return [window.since for window in faults if any(window.reason.startswith(word) for word in UNHEARD)]


def is_taken(request: Received, unheard: Sequence[float]) -> bool:
    """Whether the receiver accepted the request, and the sender can have received that answer."""
    is_heard = not any(abs(request.at - since) <= UNHEARD_SECONDS for since in unheard)
    return request.was_accepted and is_heard
