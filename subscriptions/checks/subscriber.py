"""The rules about the values of a subscriber together, for every creation and change."""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import Subscriber
from subscriptions.values.names import refusal_of_reserved
from subscriptions.values.refusals import Refusal

# The ratio of the model's defaults, 100 of 500.
_REFILL_SHARE = 5


def completed(values: Mapping[str, Any], *, stored: Subscriber | None) -> dict[str, Any]:
    """Return the given values with the derived values."""
    full = dict(values)
    if stored is None and "max_queued_to_send" in full:
        full.setdefault("refill_level", full["max_queued_to_send"] // _REFILL_SHARE)
    return full


def refusals(values: Mapping[str, Any], *, stored: Subscriber | None = None) -> dict[str, Refusal]:
    """Return field → reason for the given values that are refused; empty if they fit together."""
    row = stored or Subscriber()
    refused = {}
    if reason := refusal_of_reserved(values.get("name", ""), stored=row.name):
        refused["name"] = Refusal(reason)
    most = values.get("max_queued_to_send", row.max_queued_to_send)
    if values.get("refill_level", row.refill_level) >= most:
        refused["refill_level"] = Refusal("refill_level must be less than max_queued_to_send.")
    return refused
