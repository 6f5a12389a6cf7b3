"""Real HTTP receivers, which follow instructions and record every request."""

from tests.support.receivers.behaviours import (
    OK,
    Answer,
    Behaviour,
    Close,
    Drip,
    Hold,
    Slow,
    Stream,
)
from tests.support.receivers.endpoint import ReceiverEndpoint
from tests.support.receivers.received import Received
from tests.support.receivers.receiver import Receiver

__all__ = [
    "OK",
    "Answer",
    "Behaviour",
    "Close",
    "Drip",
    "Hold",
    "Received",
    "Receiver",
    "ReceiverEndpoint",
    "Slow",
    "Stream",
]
