"""Validation of default destinations, for the API and the console."""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import EventType, Kind

_KINDS = {
    Kind.QUEUE: "a QUEUE group takes the messages that its filter accepts",
    Kind.SYNC: "a subscription with a later position is called if no earlier one matches",
}


def destination_refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason if `takes_unmatched` contradicts the event type, otherwise nothing."""
    kind = Kind(event_type.kind)
    if not values.get("takes_unmatched") or kind not in _KINDS:
        return {}
    text = (
        f"{event_type} is of kind {kind}, and a default destination is for TOPIC: {_KINDS[kind]}."
    )
    return {"takes_unmatched": text}
