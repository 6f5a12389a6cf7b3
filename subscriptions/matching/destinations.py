"""The destination of a delivered message: a subscriber, a subscription of it, or an application.

A message is either published, to all qualifying subscriptions, or delivered, to a destination. An
application stands for all subscribers with its name, as webMethods' default client does for all
triggers of a server. A subscriber of the same name comes first. webMethods loses a message for an
unknown destination; Inturn refuses it.
"""

from dataclasses import dataclass

from subscriptions.models import EventType, Subscriber, Subscription
from subscriptions.values.names import is_name


@dataclass(frozen=True, slots=True)
class Destination:
    """`name` is the text as given; without `subscriber_ids` it includes everybody.

    Subscribers without a subscription include all of their subscriptions.
    """

    name: str = ""
    subscriber_ids: frozenset[int] | None = None
    subscription_id: int | None = None

    def includes(self, subscriber_id: int, subscription_id: int) -> bool:
        is_of_subscribers = self.subscriber_ids is None or subscriber_id in self.subscriber_ids
        return is_of_subscribers and self.subscription_id in (None, subscription_id)


EVERYBODY = Destination()


class UnknownDestinationError(Exception):
    """`detail` is for people: the unknown name, and the remedy."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def destination(name: str, *, event_type: EventType) -> Destination:
    """Find `subscriber`, `subscriber/subscription` or an application.

    Raises UnknownDestinationError. A subscription to another event type could never get the
    message, so it counts as unknown.
    """
    subscriber_name, slash, subscription_name = name.partition("/")
    subscriber_ids = _subscriber_ids(subscriber_name, may_be_application=not slash)
    if subscriber_ids and not slash:
        return Destination(name, subscriber_ids)
    found = Subscription.objects.filter(
        subscriber__in=subscriber_ids, name=subscription_name, event_type=event_type
    )
    subscription_id = (
        found.values_list("pk", flat=True).first() if is_name(subscription_name) else None
    )
    if subscription_id is None:
        # The same words whether or not there is such a subscriber: a publisher need not know.
        kind = f"subscription {name!r} to {event_type}" if slash else f"subscriber {name!r}"
        raise UnknownDestinationError(
            f"There is no {kind}; give Destination a subscriber's name, subscriber/subscription, "
            "or the application of several subscribers."
        )
    return Destination(name, subscriber_ids, subscription_id)


def _subscriber_ids(name: str, *, may_be_application: bool) -> frozenset[int]:
    if not is_name(name):
        return frozenset()
    found = frozenset(Subscriber.objects.filter(name=name).values_list("pk", flat=True))
    if found or not may_be_application:
        return found
    return frozenset(Subscriber.objects.filter(application=name).values_list("pk", flat=True))
