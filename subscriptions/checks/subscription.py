"""The rules about the values of a subscription together, for every creation and change.

A field without effect is refused rather than stored, because whoever sets a time-out on a mailbox
expects it to work. A PULL subscription has no signing secret either, because no request is sent:
clients fetch with a key.

Each field by itself is checked by the validators of the model. Three checks need more than values:
`addresses` queries a name server, `sync_overlap` locks the event type, and `moved_endpoint` needs
to know which credentials were entered.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError

from subscriptions.checks import script
from subscriptions.models import DedupMode, EventType, JoinMode, Kind, Mode, Policy, Subscription
from subscriptions.models.policy import DEFAULT_POLICY
from subscriptions.scripts.includes import Library
from subscriptions.values.endpoints import INTERNAL
from subscriptions.values.header_values import HeaderError, check_auth
from subscriptions.values.names import validate_subscribable
from subscriptions.values.refusals import Refusal

UNSIGNED = (
    "A PULL subscription has no signing secret: nothing is sent to it. "
    "Clients fetch with a key of the subscriber."
)
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

_MOVED = "Its deliveries belong to the old one; create a new subscription instead."
_FIXED = {
    "subscriber": _MOVED,
    "event_type": _MOVED,
    "mode": "Its deliveries are in a lane or in a mailbox already; create another subscription, "
    "and make this one INACTIVE.",
}
_NO_AUTH = {"type": "none"}
_NOT_IN_A_MAILBOX = {
    Kind.QUEUE: "one endpoint of a group takes each message, and a mailbox is not an endpoint: it "
    "has no moment of taking one",
    Kind.SYNC: "the publisher waits for the answer of an endpoint, and a mailbox does not answer",
}
_NOT_DEDUPLICATED = {
    Kind.QUEUE: "one endpoint of a group takes each message, "
    "so no subscription sees the messages of another",
    Kind.SYNC: "the publisher waits for the answer to each call",
}
_WITHOUT_DEFAULT_DESTINATION = {
    Kind.QUEUE: "a QUEUE group takes the messages that its filter accepts",
    Kind.SYNC: "a subscription with a later position is called if no earlier one matches",
}

FieldRefusal = tuple[str, str]


def completed(values: Mapping[str, Any], *, stored: Subscription | None) -> dict[str, Any]:
    """Return the given values with the derived values.

    A new subscription gets the default policy, and forwards the headers that its event type names.
    Leaving PATH clears the path, and leaving a join the join's name and path, so callers need not.
    """
    full = dict(values)
    if stored is None:
        full.setdefault("endpoint", "")
        if "policy" not in full:
            full["policy"] = Policy.objects.get(name=DEFAULT_POLICY)
        is_pull = full.get("mode") == Mode.PULL
        full.setdefault("forward_headers", [] if is_pull else full["event_type"].forward_headers)
    if full.get("dedup_mode", DedupMode.PATH) != DedupMode.PATH:
        full.setdefault("dedup_path", "")
    if full.get("join_mode") == JoinMode.NONE:
        full = {"join_name": "", "join_path": ""} | full
    return full


def refusals(
    values: Mapping[str, Any],
    *,
    stored: Subscription | None = None,
    common: Library | None = None,
) -> dict[str, Refusal]:
    """Return field → reason for the given values that are refused; empty if they fit together.

    `stored` has the other values: they were checked before, and are not refused. A script may
    include those of `common`, by default the stored common scripts.
    """
    row = stored or Subscription()
    event_type: EventType = values["event_type"] if stored is None else stored.event_type
    full = {field.name: getattr(row, field.attname) for field in row._meta.concrete_fields}
    full |= values
    moved = list(_moved(values, stored))
    # The rest would be about another subscription.
    found = moved or chain(
        _mode(values, full, event_type),
        _script_text(values, common),
        script_contradictions(full, event_type=event_type),
        _credentials(full),
        _dedup(full, event_type),
        _join(full, event_type),
        _default_destination(values, event_type),
    )
    refused: dict[str, Refusal] = {}
    for field, reason in found:
        refused.setdefault(field, reason if isinstance(reason, Refusal) else Refusal(reason))
    return refused


def _moved(values: Mapping[str, Any], stored: Subscription | None) -> Iterator[FieldRefusal]:
    if stored is None:
        try:
            validate_subscribable(values["event_type"].name)
        except ValidationError as error:
            yield "event_type", str(error.message)
        return
    for field, reason in _FIXED.items():
        if values.get(field, getattr(stored, field)) != getattr(stored, field):
            yield field, reason


def _mode(
    values: Mapping[str, Any], full: Mapping[str, Any], event_type: EventType
) -> Iterator[FieldRefusal]:
    if full["mode"] == Mode.PULL:
        yield from _of_pull(values, event_type)
        return
    if not full["endpoint"]:
        yield "endpoint", "A PUSH subscription needs an endpoint, e.g. https://example.com/hook."
    if values.get("max_receives") is not None:
        reason = "It counts how often a message is fetched, of a PULL subscription; leave it out."
        yield "max_receives", reason
    if values.get("forward_authorization") and event_type.kind != Kind.SYNC:
        yield (
            "forward_authorization",
            f"{event_type} is of kind {event_type.kind}: it is sent when the publisher has gone, "
            "and a credential is not stored. Only SYNC hands one on; switch this off.",
        )


def _of_pull(values: Mapping[str, Any], event_type: EventType) -> Iterator[FieldRefusal]:
    for name, (unset, reason) in PUSH_ONLY.items():
        if values.get(name, unset) not in (unset, _NO_AUTH):
            yield name, f"A PULL subscription has none: {reason}. Leave it out."
    policy = values.get("policy")
    if policy is not None and policy.name != DEFAULT_POLICY:
        yield (
            "policy",
            "A PULL subscription has none: nothing is sent, so no policy has a say; "
            "max_receives bounds how often a message is fetched. Leave it out.",
        )
    if (kind := Kind(event_type.kind)) in _NOT_IN_A_MAILBOX:
        reason = f"{event_type} is of kind {kind}: {_NOT_IN_A_MAILBOX[kind]}."
        yield "mode", f"{reason} A mailbox is for TOPIC."


def _script_text(values: Mapping[str, Any], common: Library | None) -> Iterator[FieldRefusal]:
    if fault := script.fault(values.get("script", ""), common=common):
        yield "script", script.fault_refusal(fault)


def script_contradictions(
    values: Mapping[str, Any], *, event_type: EventType
) -> Iterator[FieldRefusal]:
    """Yield field and reason for contradictions of `endpoint` and `script`."""
    endpoint, text, kind = values["endpoint"], values["script"], event_type.kind
    if endpoint == INTERNAL and kind != Kind.SYNC:
        yield (
            "endpoint",
            f"{INTERNAL} is for SYNC, where a script answers; {event_type} is of kind {kind}.",
        )
    elif endpoint == INTERNAL and not text:
        yield "script", f"With the endpoint {INTERNAL} a script makes the answer; give one."
    elif text and kind == Kind.QUEUE:
        yield (
            "script",
            f"{event_type} is of kind QUEUE, where the endpoints of a group take the "
            "same message; leave it out.",
        )
    elif text and kind == Kind.SYNC and endpoint != INTERNAL:
        yield (
            "script",
            f"The endpoint answers; give the endpoint {INTERNAL} for the script to, "
            "or leave it out.",
        )


def _credentials(full: Mapping[str, Any]) -> Iterator[FieldRefusal]:
    try:
        check_auth(
            full["auth"] or {},
            header_names=full["headers"] or {},
            forwards=full["forward_authorization"],
        )
    except HeaderError as error:
        yield "auth", str(error)


def _dedup(full: Mapping[str, Any], event_type: EventType) -> Iterator[FieldRefusal]:
    mode, path, kind = full["dedup_mode"], full["dedup_path"], Kind(event_type.kind)
    if mode != DedupMode.NONE and kind in _NOT_DEDUPLICATED:
        reason = f"{event_type} is of kind {kind}: {_NOT_DEDUPLICATED[kind]}."
        yield "dedup_mode", f"{reason} Leave it at NONE."
    elif mode == DedupMode.PATH and not path:
        yield (
            "dedup_path",
            "Give the path to the value that identifies a message, such as $$->'Body'->>'id'.",
        )
    elif mode != DedupMode.PATH and path:
        yield "dedup_path", "Only dedup_mode PATH has a path; leave it empty."


def _join(full: Mapping[str, Any], event_type: EventType) -> Iterator[FieldRefusal]:
    mode = full["join_mode"]
    if mode == JoinMode.NONE:
        reason = "Only a join has it: choose join_mode ALL or ONLY_ONE, or leave it empty."
        yield from ((name, reason) for name in ("join_name", "join_path") if full[name])
    elif event_type.kind != Kind.TOPIC:
        yield (
            "join_mode",
            f"{event_type} is of kind {event_type.kind}; "
            "only messages of TOPIC event types are joined. Leave it at NONE.",
        )
    elif not full["join_name"]:
        yield (
            "join_name",
            "Give the join a name; the subscriber's other "
            "subscriptions of this join have the same.",
        )
    elif mode == JoinMode.ALL and full["mode"] == Mode.PULL:
        yield (
            "join_mode",
            "The messages of a join of ALL are sent together, to an endpoint. "
            "Use a PUSH subscription.",
        )


def _default_destination(
    values: Mapping[str, Any], event_type: EventType
) -> Iterator[FieldRefusal]:
    kind = Kind(event_type.kind)
    if values.get("takes_unmatched") and kind in _WITHOUT_DEFAULT_DESTINATION:
        yield (
            "takes_unmatched",
            f"{event_type} is of kind {kind}, and a default destination is for TOPIC: "
            f"{_WITHOUT_DEFAULT_DESTINATION[kind]}.",
        )
