"""Answers that the sender may not have received.

The receiver accepted the request, but its fault began at that moment and cut the connection.
"""

from collections.abc import Iterable, Sequence

from tests.support.receivers import Received
from tests.torture.records import FaultWindow

UNHEARD = ("the receiver refuses connections", "SIGSTOP of")
UNHEARD_SECONDS = 0.4


def unheard_moments(faults: Iterable[FaultWindow]) -> list[float]:
    """Return the moments around which an answer may be lost."""
    return [
        window.since for window in faults if any(window.reason.startswith(word) for word in UNHEARD)
    ]


def is_taken(request: Received, unheard: Sequence[float]) -> bool:
    """Return whether the request was accepted, and the sender can have the answer."""
    is_heard = not any(abs(request.at - since) <= UNHEARD_SECONDS for since in unheard)
    return request.was_accepted and is_heard
