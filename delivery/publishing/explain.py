"""Explaining which subscriptions of a message's event type qualify, and why or why not."""

from collections.abc import Iterable

from delivery.models import Message
from subscriptions.filters import document
from subscriptions.matching.destinations import (
    EVERYBODY,
    Destination,
    UnknownDestinationError,
    destination,
)
from subscriptions.matching.explanations import Explanation, explain_each, explain_matches
from subscriptions.models import Subscription


def explain_message(message: Message) -> list[Explanation]:
    """Explain by the present subscriptions, which may have changed since it was published."""
    seen = document(message.headers, bytes(message.body))
    return explain_matches(message.event_type, seen, to=_destination(message))


def explain_message_by(
    message: Message, subscriptions: Iterable[Subscription]
) -> list[Explanation]:
    """Explain by all subscriptions of the event type, as they are given."""
    seen = document(message.headers, bytes(message.body))
    return explain_each(message.event_type, subscriptions, seen, to=_destination(message))


def _destination(message: Message) -> Destination | None:
    if not message.destination:
        return EVERYBODY
    try:
        return destination(message.destination, event_type=message.event_type)
    except UnknownDestinationError:
        return None
