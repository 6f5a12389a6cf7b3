"""What Inturn promises and this version does not do yet: refused, rather than accepted without effect.

A line goes when the feature comes.
"""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import Durability, Mode, Processing

_REFUSED_VALUES: dict[str, dict[str, frozenset[str]]] = {
    "event type": {"durability": frozenset({Durability.VOLATILE})},
    "subscriber": {"processing": frozenset({Processing.CONCURRENT})},
    "subscription": {"mode": frozenset({Mode.PULL})},
}
# Whatever their value, unless it is the one that changes nothing.
_REFUSED_FIELDS: dict[str, dict[str, Any]] = {
    "event type": {"ttl_seconds": None},
    "subscriber": {"max_in_flight": 1},
}
_REFUSED_HEADERS = frozenset({"destination"})


def refusals(kind_of_object: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return field → reason for each value that has no effect yet; empty when all have."""
    refused = {
        name: f"{values[name]} is not available yet in this version."
        for name, unavailable in _REFUSED_VALUES.get(kind_of_object, {}).items()
        if values.get(name) in unavailable
    }
    for name, neutral in _REFUSED_FIELDS.get(kind_of_object, {}).items():
        if values.get(name, neutral) != neutral:
            refused[name] = f"Not available yet in this version; leave it out{_or(neutral)}."
    return refused


def refused_header(names: Mapping[str, str]) -> str | None:
    """Return the first header of a publish, by lower-case name, that has no effect yet."""
    return next((name for name in names if name in _REFUSED_HEADERS), None)


def _or(neutral: Any) -> str:
    return f" or give {'null' if neutral is None else neutral}"
