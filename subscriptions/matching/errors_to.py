"""Whom the failures of a message are told: what `ErrorsTo` and a publisher's `errors_to` may say.

A subscriber, or subscriber/subscription, to which the failure is delivered in place of published; `-` is nobody. It has to have a
subscription to Inturn.Delivery.Failed, or nothing could ever arrive there.
"""

from subscriptions.matching.destinations import Destination, UnknownDestinationError, destination
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType, Subscription

ERRORS_TO = "errorsto"
FAILED = "Inturn.Delivery.Failed"
NOBODY = "-"


def failed_event_type() -> EventType:
    event_type = event_type_by_name(FAILED)
    assert event_type is not None, "it is part of the installation and cannot be deleted"
    return event_type


def errors_destination(name: str) -> Destination:
    """Find whom `ErrorsTo` names, other than nobody; raises UnknownDestinationError, which says what to do."""
    event_type = failed_event_type()
    try:
        found = destination(name, event_type=event_type)
    except UnknownDestinationError:
        detail = f"There is no {name!r} with a subscription to {FAILED}; name a subscriber, subscriber/subscription, or - for nobody."
        raise UnknownDestinationError(detail) from None
    wishes = Subscription.objects.filter(subscriber=found.subscriber_id, event_type=event_type)
    if found.subscription_id is None and not wishes.exists():
        detail = f"There is no {name!r} with a subscription to {FAILED}: create that subscription first."
        raise UnknownDestinationError(detail)
    return found


def check_errors_to(name: str) -> None:
    """Raise UnknownDestinationError unless failures can be told as this says; empty: as always, to all who want them."""
    if name not in ("", NOBODY):
        errors_destination(name)
