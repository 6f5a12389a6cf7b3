"""Validation of a subscription's dedup settings, for the API and the console."""

from collections.abc import Mapping
from typing import Any

from subscriptions.filters import FilterError, parse_path
from subscriptions.models import DedupMode, EventType, Kind

_KINDS = {
    Kind.QUEUE: "one endpoint of a group takes each message, "
    "so no subscription sees the messages of another",
    Kind.SYNC: "the publisher waits for the answer to each call",
}


def check_path(text: str) -> None:
    """Raise FilterError, with line and column, unless it is a path such as `$$->'Body'->>'id'`."""
    try:
        parse_path(text)
    except FilterError as error:
        message = f"{error.message}; a path is wanted, such as $$->'Body'->>'id'"
        raise FilterError(message, error.line, error.column) from None


def dedup_refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason for contradictions of `dedup_mode` and `dedup_path`.

    Empty if there are none.
    """
    mode, path = values["dedup_mode"], values["dedup_path"]
    if mode != DedupMode.NONE and event_type.kind in _KINDS:
        reason = (
            f"{event_type} is of kind {event_type.kind}: {_KINDS[Kind(event_type.kind)]}. "
            "Leave it at NONE."
        )
        return {"dedup_mode": reason}
    if mode == DedupMode.PATH and not path:
        return {
            "dedup_path": "Give the path to the value that identifies a message, "
            "such as $$->'Body'->>'id'."
        }
    if mode != DedupMode.PATH and path:
        return {"dedup_path": "Only dedup_mode PATH has a path; leave it empty."}
    return {}
