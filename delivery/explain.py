"""Explaining: of every subscription of a message's event type, whether it qualifies and why or why not."""

from delivery.models import Message
from subscriptions import matching
from subscriptions.filters import document
from subscriptions.matching import Explanation


def explain(message: Message) -> list[Explanation]:
    """Judge by the subscriptions as they are now, which may not be what they were when it was published."""
    return matching.explain(message.event_type, document(message.headers, bytes(message.body)))
