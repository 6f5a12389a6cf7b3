"""The destination of a message's failure notices: the values of `ErrorsTo` and `errors_to`.

It is a subscriber, or subscriber/subscription, to which the notice is delivered instead of
published; `-` is nobody. It must have a subscription to Inturn.Delivery.Failed; otherwise no notice
could ever arrive.
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
    """Find the destination in `ErrorsTo`, other than nobody.

    Raises UnknownDestinationError.
    """
    event_type = failed_event_type()
    # The same words whether or not there is such a subscriber: a publisher need not know.
    detail = (
        f"There is no {name!r} with a subscription to {FAILED}; name a subscriber that has one, "
        "subscriber/subscription, or - for nobody."
    )
    try:
        recipient = destination(name, event_type=event_type)
    except UnknownDestinationError:
        raise UnknownDestinationError(detail) from None
    subscriptions = Subscription.objects.filter(
        subscriber__in=recipient.subscriber_ids or (), event_type=event_type
    )
    if recipient.subscription_id is None and not subscriptions.exists():
        raise UnknownDestinationError(detail)
    return recipient


def check_errors_to(name: str) -> None:
    """Raise UnknownDestinationError unless failures can be reported to `name`.

    An empty name stands for the usual: all subscriptions to Inturn.Delivery.Failed.
    """
    if name not in ("", NOBODY):
        errors_destination(name)
