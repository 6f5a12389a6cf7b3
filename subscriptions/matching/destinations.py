"""The destination of a delivered message: one subscriber, or one of its subscriptions.

A message is either published, to all qualifying subscriptions, or delivered, to one destination.
webMethods loses a message that is delivered to an unknown destination; Inturn refuses it.
"""

from dataclasses import dataclass

from subscriptions.models import EventType, Subscriber, Subscription
from subscriptions.values.names import is_name


@dataclass(frozen=True, slots=True)
class Destination:
    """`name` is the text as given.

    A subscriber without a subscription includes all of its subscriptions.
    """

    name: str = ""
    subscriber_id: int | None = None
    subscription_id: int | None = None

    def includes(self, subscriber_id: int, subscription_id: int) -> bool:
        return self.subscriber_id in (None, subscriber_id) and self.subscription_id in (
            None,
            subscription_id,
        )


EVERYBODY = Destination()


class UnknownDestinationError(Exception):
    """`detail` is for people: the unknown name, and the remedy."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def destination(name: str, *, event_type: EventType) -> Destination:
    """Find `subscriber` or `subscriber/subscription`; raises UnknownDestinationError.

    A subscription to another event type could never get the message, so it counts as unknown.
    """
    subscriber_name, slash, subscription_name = name.partition("/")
    subscriber_id = _subscriber_id(subscriber_name)
    if subscriber_id is None:
        detail = (
            f"There is no subscriber {subscriber_name!r}; give Destination a subscriber's name, "
            "or subscriber/subscription."
        )
        raise UnknownDestinationError(detail)
    if not slash:
        return Destination(name, subscriber_id)
    found = Subscription.objects.filter(
        subscriber=subscriber_id, name=subscription_name, event_type=event_type
    )
    subscription_id = (
        found.values_list("pk", flat=True).first() if is_name(subscription_name) else None
    )
    if subscription_id is None:
        detail = (
            f"{subscriber_name} has no subscription {subscription_name!r} to {event_type}; "
            "look at its subscriptions."
        )
        raise UnknownDestinationError(detail)
    return Destination(name, subscriber_id, subscription_id)


def _subscriber_id(name: str) -> int | None:
    return (
        Subscriber.objects.filter(name=name).values_list("pk", flat=True).first()
        if is_name(name)
        else None
    )
