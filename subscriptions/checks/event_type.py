"""The rules about the values of an event type together, for every creation and change.

Names that differ only in case are allowed, and reported to the naming person. A publisher who
spells a name differently gets 404, or publishes to the other event type. Both may be wanted, for
example while publishers move from a spelling to the other, so this is a warning.
"""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import Durability, ErrorsWhen, EventType, Kind
from subscriptions.values.names import refusal_of_reserved
from subscriptions.values.refusals import Refusal

_SYNC = "A SYNC message is answered at once: it is GUARANTEED and has no ttl_seconds."


def refusals(values: Mapping[str, Any], *, stored: EventType | None = None) -> dict[str, Refusal]:
    """Return field → reason for the given values that are refused; empty if they fit together."""
    row = stored or EventType()
    full = {field.name: getattr(row, field.name) for field in row._meta.concrete_fields}
    full |= values
    refused = {}
    if reason := refusal_of_reserved(full["name"], stored=row.name):
        refused["name"] = reason
    if stored is not None and full["kind"] != stored.kind:
        refused["kind"] = (
            "It cannot be changed, because published messages are handled by it. "
            "Create another event type."
        )
    if full["errors_when"] != ErrorsWhen.DELIVERY and full["kind"] != Kind.QUEUE:
        refused["errors_when"] = "Only a QUEUE has groups: give errors_when DELIVERY."
    if full["kind"] == Kind.SYNC and full["durability"] != Durability.GUARANTEED:
        refused["durability"] = _SYNC
    if full["kind"] == Kind.SYNC and full["ttl_seconds"] is not None:
        refused["ttl_seconds"] = _SYNC
    return {field: Refusal(reason) for field, reason in refused.items()}


def case_warning(name: str) -> str:
    """Return the warning about an event type's name; empty if no other differs only in case."""
    others = EventType.objects.filter(name__iexact=name).exclude(name=name).order_by("name")
    found = list(others.values_list("name", flat=True)[:5])
    if not found:
        return ""
    return (
        f"There is also {', '.join(found)}, which differs from {name} only in case. Names are "
        "case-sensitive: check that publishers and subscriptions use the one that is meant."
    )
