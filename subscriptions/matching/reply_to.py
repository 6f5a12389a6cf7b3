"""The event type of the replies to a message: the value of the header `ReplyTo`.

`Quote.Made` publishes each reply to all matching subscriptions. `Quote.Made; destination=abc`, or
`abc/main`, delivers it to the subscriber, or to the subscription. The publisher must be allowed to
publish the event type itself: otherwise receivers could publish it on the publisher's behalf.
"""

from dataclasses import dataclass

from subscriptions.matching.destinations import Destination, UnknownDestinationError, destination
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.names import is_name, is_reserved

REPLY_TO = "replyto"
_PARAMETER = "destination"


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """`destination` is a name as given; empty means all matching subscriptions."""

    event_type: EventType
    destination: str

    def found_destination(self) -> Destination:
        """Return the named destination; raise UnknownDestinationError."""
        return destination(self.destination, event_type=self.event_type)


class ReplyToRefusedError(Exception):
    """Nobody can reply as requested; the message has the reason and the remedy."""

    def __init__(self, detail: str, *, status: int, code: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code


def find_reply_to(text: str, *, publisher: Publisher) -> ReplyTo:
    """Find the event type in `ReplyTo`; raise ReplyToRefusedError.

    The destination is not looked up.
    """
    name, to = _parts(text)
    event_type = event_type_by_name(name) if is_name(name) else None
    if event_type is None:
        detail = (
            f"There is no event type {name[:200]!r} for replies; an administrator can create it."
        )
        raise ReplyToRefusedError(detail, status=404, code="no-such-reply-to")
    if is_reserved(name):
        detail = f"ReplyTo: {name} is published only by Inturn itself; name another event type."
        raise ReplyToRefusedError(detail, status=403, code="reserved")
    if event_type.kind == Kind.SYNC:
        detail = f"ReplyTo: {name} is SYNC; replies are of an event type of kind TOPIC or QUEUE."
        raise ReplyToRefusedError(detail, status=400, code="reply-to-refused")
    if not publisher.may_publish(event_type):
        detail = (
            f"ReplyTo: {publisher.name} may not publish {name}, so nobody may reply by it; an "
            "administrator can allow it."
        )
        raise ReplyToRefusedError(detail, status=403, code="not-allowed")
    return ReplyTo(event_type, to)


def check_reply_to(text: str, *, publisher: Publisher) -> None:
    """Raise ReplyToRefusedError unless replies can be published as `ReplyTo` says."""
    reply_to = find_reply_to(text, publisher=publisher)
    if not reply_to.destination:
        return
    try:
        reply_to.found_destination()
    except UnknownDestinationError as unknown:
        raise ReplyToRefusedError(unknown.detail, status=404, code="no-such-reply-to") from None


def _parts(text: str) -> tuple[str, str]:
    """Return the event type's name and the destination."""
    name, semicolon, rest = (part.strip() for part in text.partition(";"))
    parameter, _, to = (part.strip() for part in rest.partition("="))
    if semicolon and not (parameter.lower() == _PARAMETER and to):
        detail = (
            "Give ReplyTo an event type, such as Quote.Made, or an event type and a destination: "
            "Quote.Made; destination=abc."
        )
        raise ReplyToRefusedError(detail, status=400, code="reply-to-refused")
    return name, to
