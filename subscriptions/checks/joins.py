"""Validation of a subscription's join, for the API and the console."""

from collections.abc import Mapping
from typing import Any

from subscriptions.checks.dedup import check_path
from subscriptions.filters import FilterError
from subscriptions.models import EventType, JoinMode, Kind, Mode


def join_refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason for contradictions of the fields of a join; empty if there are none.

    Needs `join_mode`, `join_name`, `join_path` and `mode`.
    """
    mode = values["join_mode"]
    if mode == JoinMode.NONE:
        given = (name for name in ("join_name", "join_path") if values[name])
        return dict.fromkeys(
            given, "Only a join has it: choose join_mode ALL or ONLY_ONE, or leave it empty."
        )
    if event_type.kind != Kind.TOPIC:
        reason = (
            f"{event_type} is of kind {event_type.kind}; "
            "only messages of TOPIC event types are joined."
        )
        return {"join_mode": f"{reason} Leave it at NONE."}
    if not values["join_name"]:
        return {
            "join_name": "Give the join a name; the subscriber's other "
            "subscriptions of this join have the same."
        }
    if mode == JoinMode.ALL and values["mode"] == Mode.PULL:
        return {
            "join_mode": "The messages of a join of ALL are sent together, to an endpoint. "
            "Use a PUSH subscription."
        }
    try:
        if values["join_path"]:
            check_path(values["join_path"])
    except FilterError as error:
        return {"join_path": str(error)}
    return {}
