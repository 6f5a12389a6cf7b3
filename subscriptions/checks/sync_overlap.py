"""Conflicts of two SYNC subscriptions with the same selection: either would never be called."""

from subscriptions.filters import filter_identity
from subscriptions.models import EventType, Kind, Subscription


def conflicting_subscription(
    event_type: EventType, *, header_filter_string: str, filter_text: str, excluding: Subscription
) -> Subscription | None:
    """Return a subscription with the same filter and header string, if the event type is SYNC.

    `excluding` itself does not count. Call it in the saving transaction: it locks the event type
    until the end, so if two people save at once, the second sees the first. Publishing goes on
    meanwhile. INACTIVE subscriptions count as well, because an activation is never refused.
    Overlapping but unequal filters are found only when a message arrives.
    """
    if event_type.kind != Kind.SYNC:
        return None
    EventType.objects.select_for_update(no_key=True).only("pk").get(pk=event_type.pk)
    others = Subscription.objects.filter(
        event_type=event_type,
        header_filter_string=header_filter_string,
        filter_identity=filter_identity(filter_text),
    ).exclude(pk=excluding.pk)
    return (
        others.select_related("subscriber").only("name", "subscriber__name").order_by("id").first()
    )


def overlap_refusal(other: Subscription) -> str:
    """Return the message for the person who saves the second subscription."""
    return (
        f"{other} has the same filter and header string, and of a SYNC event type only one would "
        "ever be called. Change or delete that one, or give this one another filter."
    )
