"""A changed server gets no stored credential: whoever changes it enters the credential again.

Stored credentials are masked. Without this rule everybody who may change an endpoint could read
them, at a server of their own. A server is a scheme, a host and a port. The one exception is the
move of many endpoints at once (`subscriptions.rewriting`), which an administrator confirms.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from subscriptions.models import Subscription
from subscriptions.values.endpoints import EndpointError, parse_endpoint

SECRET_PARTS = frozenset({"password", "token"})

Server = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCredentials:
    """The stored credentials that a change does not replace.

    `headers` and `shared` are names of headers; the subscriber has the values of `shared`.
    """

    has_auth: bool = False
    headers: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.has_auth or self.headers or self.shared)


def is_moved(before: str, after: str) -> bool:
    """Return whether requests go to another server than before."""
    server = _server_of(after)
    return server is not None and server != _server_of(before)


def kept_credentials(
    row: Subscription, *, is_auth_kept: bool, headers: Mapping[str, Any], kept: Collection[str]
) -> KeptCredentials:
    """Return the credentials that a row would keep: `kept` are names among its new `headers`."""
    own = {name.lower() for name in headers}
    has_auth = (row.auth or {}).get("type", "none") != "none"
    shared = [name for name in row.subscriber.headers or {} if name.lower() not in own]
    return KeptCredentials(
        has_auth=is_auth_kept and has_auth,
        headers=tuple(sorted(name for name in kept if name in (row.headers or {}))),
        shared=tuple(sorted(shared)),
    )


def moved_refusals(row: Subscription, endpoint: str, kept: KeptCredentials) -> dict[str, str]:
    """Return field → reason if the endpoint moves with stored credentials; empty otherwise."""
    if not kept or not is_moved(row.endpoint, endpoint):
        return {}
    refused = {}
    if kept.has_auth:
        refused["auth"] = (
            "The endpoint changes its server, which does not get the stored credentials: enter "
            "them again, or choose none."
        )
    if kept.headers:
        refused["headers"] = (
            "The endpoint changes its server, which does not get the stored "
            f"{_values_of(kept.headers)}: enter each again, or remove the header."
        )
    elif kept.shared and not _is_server_of_subscriber(row, endpoint):
        refused["headers"] = (
            "The endpoint changes to a server that no other subscription of the subscriber "
            f"has, and which does not get the subscriber's {_values_of(kept.shared)}: enter each "
            "here, or remove it from the subscriber."
        )
    return refused


def takes_credentials(row: Subscription, endpoint: str) -> bool:
    """Return whether the server of this endpoint would newly get the row's stored credentials."""
    own = row.headers or {}
    return bool(
        moved_refusals(
            row, endpoint, kept_credentials(row, is_auth_kept=True, headers=own, kept=own)
        )
    )


def _is_server_of_subscriber(row: Subscription, endpoint: str) -> bool:
    others = Subscription.objects.filter(subscriber=row.subscriber_id).exclude(pk=row.pk)
    server = _server_of(endpoint)
    return any(server == _server_of(one) for one in others.values_list("endpoint", flat=True))


def _values_of(names: Collection[str]) -> str:
    return f"value{'s' if len(names) > 1 else ''} of {', '.join(names)}"


def _server_of(endpoint: str) -> Server | None:
    """Return the server of an endpoint; None if it has none, as a PULL subscription's."""
    try:
        parsed = parse_endpoint(endpoint)
    except EndpointError:
        return None
    return parsed.url.partition(":")[0], parsed.host, parsed.port
