"""Event types whose names differ only in case: allowed, and reported to the naming person.

A publisher who spells a name differently gets 404, or publishes to the other event type. Both may
be wanted, for example while publishers move from a spelling to the other, so this is a warning.
"""

from subscriptions.models import EventType


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
