"""Conflicts of two SYNC subscriptions with the same selection: either would never be called."""

from collections.abc import Mapping
from typing import Any

from subscriptions.filters import filter_identity
from subscriptions.models import EventType, Kind, Subscription
from subscriptions.values.refusals import Refusal


def conflicting_subscription(
    values: Mapping[str, Any], *, stored: Subscription | None = None
) -> Subscription | None:
    """Return a subscription with the same filter and header string, if the event type is SYNC.

    None if neither is given for a stored subscription, which itself does not count. Call it in the
    saving transaction: it locks the event type until the end, so if two people save at once, the
    second sees the first. Publishing goes on meanwhile. INACTIVE subscriptions count as well,
    because an activation is never refused. Overlapping but unequal filters are found only when a
    message arrives.
    """
    if stored is not None and not {"filter", "header_filter_string"} & set(values):
        return None
    row = stored or Subscription(event_type=values["event_type"])
    if row.event_type.kind != Kind.SYNC:
        return None
    EventType.objects.select_for_update(no_key=True).only("pk").get(pk=row.event_type_id)
    others = Subscription.objects.filter(
        event_type=row.event_type,
        header_filter_string=values.get("header_filter_string", row.header_filter_string),
        filter_identity=filter_identity(values.get("filter", row.filter)),
    ).exclude(pk=row.pk)
    return (
        others.select_related("subscriber").only("name", "subscriber__name").order_by("id").first()
    )


def overlap_refusal(other: Subscription) -> Refusal:
    """Return the message for the person who saves the second subscription."""
    return Refusal(
        f"{other} has the same filter and header string, and of a SYNC event type only one would "
        "ever be called. Change or delete that one, or give this one another filter."
    )
