"""Validation of the fields of PUSH and PULL subscriptions, for the API and the console.

A field without effect is refused rather than stored, because whoever sets a time-out on a mailbox
expects it to work. A PULL subscription has no signing secret either, because no request is sent:
clients fetch with a key.
"""

from collections.abc import Mapping
from typing import Any

from subscriptions.models import EventType, Kind, Mode
from subscriptions.models.policy import DEFAULT_POLICY

FIXED = (
    "Its deliveries are in a lane or in a mailbox already; create another subscription, "
    "and make this one INACTIVE."
)
NEEDS_ENDPOINT = "A PUSH subscription needs an endpoint, e.g. https://example.com/hook."
UNSIGNED = (
    "A PULL subscription has no signing secret: nothing is sent to it. "
    "Clients fetch with a key of the subscriber."
)

_KINDS = {
    Kind.QUEUE: "one endpoint of a group takes each message, and a mailbox is not an endpoint: it "
    "has no moment of taking one",
    Kind.SYNC: "the publisher waits for the answer of an endpoint, and a mailbox does not answer",
}
# Fields forbidden for a PULL subscription: the default of a new row, and the reason.
PUSH_ONLY: dict[str, tuple[Any, str]] = {
    "endpoint": ("", "its messages stay in the mailbox until they are fetched"),
    "headers": ({}, "nothing is sent: clients get the message's own headers"),
    "auth": ({}, "clients fetch with a key of the subscriber"),
    "forward_headers": ([], "clients get the message's own headers"),
    "forward_authorization": (False, "no publisher waits for an answer"),
    "timeout_seconds": (30, "clients choose the time they need by visibility"),
    "lets_pass_on_timeout": (False, "no publisher waits for an answer"),
    "script": ("", "clients get the message as it was published"),
    "probe_url": ("", "it has no lane that could be suspended"),
}
_NO_AUTH = {"type": "none"}


def mode_refusals(values: Mapping[str, Any], *, event_type: EventType) -> dict[str, str]:
    """Return field → reason for fields in contradiction to `mode`.

    Only `mode` is required in `values`.
    """
    if values["mode"] == Mode.PULL:
        return _of_pull(values, event_type)
    refused = {} if values.get("endpoint") else {"endpoint": NEEDS_ENDPOINT}
    if values.get("max_receives") is not None:
        refused["max_receives"] = (
            "It counts how often a message is fetched, of a PULL subscription; leave it out."
        )
    if values.get("forward_authorization") and event_type.kind != Kind.SYNC:
        refused["forward_authorization"] = (
            f"{event_type} is of kind {event_type.kind}: it is sent when the publisher has gone, "
            "and a credential is not stored. Only SYNC hands one on; switch this off."
        )
    return refused


def _of_pull(values: Mapping[str, Any], event_type: EventType) -> dict[str, str]:
    refused = {
        name: f"A PULL subscription has none: {reason}. Leave it out."
        for name, (unset, reason) in PUSH_ONLY.items()
        if values.get(name, unset) not in (unset, _NO_AUTH)
    }
    policy = values.get("policy")
    if policy is not None and policy.name != DEFAULT_POLICY:
        reason = (
            "nothing is sent, so no policy has a say; "
            "max_receives bounds how often a message is fetched"
        )
        refused["policy"] = f"A PULL subscription has none: {reason}. Leave it out."
    if (kind := Kind(event_type.kind)) in _KINDS:
        refused["mode"] = f"{event_type} is of kind {kind}: {_KINDS[kind]}. A mailbox is for TOPIC."
    return refused
