"""A server gets no stored credential new to it: whoever wants so enters it again.

Stored credentials are masked. Without this rule everybody who may create a subscription or change
an endpoint could read them, at a server of their own. A server is a scheme, a host and a port.

Headers and auth of a subscription stay with its server. A header of the subscriber goes to each
server which gets the same name and value already, from a subscription of this subscriber: as the
subscriber's, or as a header entered there. So a new server needs the value once, in a header of the
subscription; afterwards the header can be left to the subscriber. The first subscription of a
subscriber needs nothing: whoever gives a subscriber headers subscribes it next.

The other exception is the move of many endpoints at once (`subscriptions.rewriting`), which an
administrator confirms.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from subscriptions.models import Subscription
from subscriptions.values.endpoints import EndpointError, parse_endpoint
from subscriptions.values.header_values import with_shared

SECRET_PARTS = frozenset({"password", "token"})

Server = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCredentials:
    """The stored credentials which a new or changed row would send and the author does not give.

    `headers` are names of the row's own; `shared` has those of the subscriber, with their values.
    """

    has_auth: bool = False
    headers: tuple[str, ...] = ()
    shared: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.has_auth or self.headers or self.shared)


def is_moved(before: str, after: str) -> bool:
    """Return whether requests go to another server than before."""
    server = _server_of(after)
    return server is not None and server != _server_of(before)


def kept_credentials(
    row: Subscription, values: Mapping[str, Any], *, is_auth_kept: bool, kept: Collection[str]
) -> KeptCredentials:
    """Return the credentials kept by a row with these new values.

    `kept` are the names of headers not entered again. The headers of an unstored subscriber come
    with the request.
    """
    has_auth = (row.auth or {}).get("type", "none") != "none"
    return KeptCredentials(
        has_auth=is_auth_kept and has_auth,
        headers=tuple(sorted(name for name in kept if name in (row.headers or {}))),
        shared={} if row.subscriber._state.adding else _shared(row, values),
    )


def moved_refusals(row: Subscription, endpoint: str, kept: KeptCredentials) -> dict[str, str]:
    """Return field → reason if a server would newly get stored credentials; empty otherwise."""
    refused = {}
    has_moved = is_moved(row.endpoint, endpoint)
    if has_moved and kept.has_auth:
        refused["auth"] = (
            "The endpoint changes its server, which does not get the stored credentials: enter "
            "them again, or choose none."
        )
    if has_moved and kept.headers:
        refused["headers"] = (
            "The endpoint changes its server, which does not get the stored "
            f"{_values_of(kept.headers)}: enter each again, or remove the header."
        )
    elif shared := _newly_shared(row, endpoint, kept.shared):
        refused["headers"] = (
            f"This server does not get the subscriber's {_values_of(shared)} from another of its "
            "subscriptions: enter each as a header of this one, or remove it from the subscriber."
        )
    return refused


def takes_credentials(row: Subscription, endpoint: str) -> bool:
    """Return whether the server of this endpoint would newly get the row's stored credentials."""
    kept = kept_credentials(row, {}, is_auth_kept=True, kept=row.headers or {})
    return bool(moved_refusals(row, endpoint, kept))


def _shared(row: Subscription, values: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the subscriber's headers sent by a row with these new values."""
    own = values.get("headers", row.headers) or {}
    auth = values.get("auth", row.auth) or {}
    has_credential = auth.get("type", "none") != "none" or values.get(
        "forward_authorization", row.forward_authorization
    )
    shared = row.subscriber.headers or {}
    sent = with_shared(own, shared, has_credential=has_credential)
    names = {name.lower() for name in own}
    return {name: shared[name] for name in shared if name in sent and name.lower() not in names}


def _newly_shared(row: Subscription, endpoint: str, shared: Mapping[str, str]) -> list[str]:
    """Return the names of the headers which no stored subscription sends to this server yet."""
    server = _server_of(endpoint)
    if server is None or not shared:
        return []
    unknown = {(name.lower(), value): name for name, value in shared.items()}
    stored = Subscription.objects.filter(subscriber=row.subscriber)
    places = stored.values_list("pk", "endpoint")
    if not places:
        return []
    there = stored.filter(pk__in=[pk for pk, place in places if _server_of(place) == server])
    for known in there.select_related("subscriber").iterator():
        for name, value in {**_shared(known, {}), **(known.headers or {})}.items():
            unknown.pop((name.lower(), value), None)
        if not unknown:
            break
    return sorted(unknown.values())


def _values_of(names: Collection[str]) -> str:
    return f"value{'s' if len(names) > 1 else ''} of {', '.join(names)}"


def _server_of(endpoint: str) -> Server | None:
    """Return the server of an endpoint; None if it has none, as a PULL subscription's."""
    try:
        parsed = parse_endpoint(endpoint)
    except EndpointError:
        return None
    return parsed.url.partition(":")[0], parsed.host, parsed.port
