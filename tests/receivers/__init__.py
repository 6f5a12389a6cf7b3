"""Real HTTP receivers that do as they are told, and remember every request."""

from tests.receivers.behaviours import OK, Answer, Behaviour, Close, Drip, Hold, Slow, Stream
from tests.receivers.endpoint import Endpoint
from tests.receivers.received import Received
from tests.receivers.receiver import Receiver

__all__ = [
    "OK",
    "Answer",
    "Behaviour",
    "Close",
    "Drip",
    "Endpoint",
    "Hold",
    "Received",
    "Receiver",
    "Slow",
    "Stream",
]
