"""Rewriting endpoints in bulk: a prefix of URLs is replaced, as when a receiver changes servers.

There are two steps, so nobody applies changes unseen: `plan_rewrite` lists the new URLs, and
`rewrite_subscriptions` applies the plan, but only if it is still the same. Each new URL is checked
as if it were typed. Subscriptions with a refused URL stay as they are; the others are changed in
one transaction, each with an entry in the configuration log.

Servers are resolved before any row is locked, because it may take seconds.
"""

import hashlib
import re
from collections.abc import Collection, Container, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import orjson
from django.db import transaction
from django.db.models import Q, QuerySet

from subscriptions.changes import record_change
from subscriptions.checks.moved_endpoint import takes_credentials
from subscriptions.models import Subscription
from subscriptions.values.addresses import AddressRefusedError, Network, check_address
from subscriptions.values.endpoints import (
    EndpointError,
    ParsedEndpoint,
    addresses_of,
    parse_endpoint,
    parse_url,
)
from subscriptions.values.shown_addresses import recorded_address

# As many as a person can review.
MOST = 1000
# Each is resolved, which takes seconds if the name servers do not answer.
MOST_SERVERS = 32
KEEPS_CREDENTIALS = (
    "it has stored credentials, which the new server would get; confirm that under "
    "Stored credentials, or change this one by itself and enter them again."
)
_FIELDS = ("endpoint", "probe_url")
_PARTS = re.compile(r"((?:[A-Za-z]+:)?)(https?:.*)", re.IGNORECASE | re.DOTALL)

Server = tuple[str, int]


class RewriteError(ValueError):
    """This cannot be planned; the message says how to correct it."""


class ChangedError(Exception):
    """The plan has changed since it was shown; nothing was rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A URL of a subscription, with the method, if any.

    `refusal` is the reason to keep the old URL.
    """

    field: str
    before: str
    after: str
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The changes of a subscription: all are made, or none if any is refused."""

    subscription: Subscription
    changes: list[Change]

    @property
    def is_refused(self) -> bool:
        return any(change.refusal for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePlan:
    """The changes to make; `seen` is a digest, equal only for the same changes."""

    rows: list[Rewritten]
    seen: str

    @property
    def accepted(self) -> list[Rewritten]:
        return [row for row in self.rows if not row.is_refused]

    @property
    def refused(self) -> list[Rewritten]:
        return [row for row in self.rows if row.is_refused]

    @property
    def keeping(self) -> int:
        """Return how many are refused only because the new server would get credentials."""
        reasons = [
            {change.refusal for change in row.changes if change.refusal} for row in self.rows
        ]
        return reasons.count({KEEPS_CREDENTIALS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The old and the new beginning of URLs; raises RewriteError if they do not fit together.

    `with_credentials`: an administrator confirmed stored credentials for the new servers.
    """

    old: str
    new: str
    with_credentials: bool = False

    def __post_init__(self) -> None:
        for text in (self.old, self.new):
            try:
                parse_url(text)
            except EndpointError as error:
                raise RewriteError(f"{text or 'Nothing'}: {error}") from None
        if self.old == self.new:
            raise RewriteError("Both are the same.")
        if self.old.endswith("/") != self.new.endswith("/"):
            raise RewriteError(
                "End both with a slash, or neither: the rest of the URL is appended unchanged."
            )

    def of(self, text: str) -> str | None:
        """Return the new text of an endpoint, or None if the URL has another beginning.

        A beginning ends with a whole part: https://a.example does not match https://a.example.org.
        """
        parts = _PARTS.fullmatch(text)
        if parts is None or not parts[2].startswith(self.old):
            return None
        rest = parts[2][len(self.old) :]
        is_whole = self.old.endswith("/") or rest[:1] in ("", "/", "?")
        return f"{parts[1]}{self.new}{rest}" if is_whole else None


def plan_rewrite(
    selected: QuerySet[Subscription],
    replacement: Replacement,
    *,
    allowed_networks: Collection[Network],
    built_in_receivers: Container[str] = (),
) -> RewritePlan:
    """Return the changes to the selected subscriptions; raise RewriteError for too many."""
    rows = _affected(selected, replacement)
    refused = _refused(_new_urls(rows, replacement, built_in_receivers), allowed_networks)
    return _planned(rows, replacement, refused)


def rewrite_subscriptions(
    selected: QuerySet[Subscription],
    replacement: Replacement,
    *,
    seen: str,
    allowed_networks: Collection[Network],
    actor: str,
    built_in_receivers: Container[str] = (),
) -> int:
    """Apply the plan with the digest `seen`, and return the number of changed subscriptions.

    Raises ChangedError and RewriteError.
    """
    affected = _affected(selected, replacement)
    refused = _refused(_new_urls(affected, replacement, built_in_receivers), allowed_networks)
    with transaction.atomic():
        locked = selected.select_for_update(of=("self",), no_key=True)
        planned = _planned(_affected(locked, replacement), replacement, refused)
        if planned.seen != seen:
            raise ChangedError
        for row in planned.accepted:
            _change(row, actor=actor)
    return len(planned.accepted)


def _affected(selected: QuerySet[Subscription], replacement: Replacement) -> list[Subscription]:
    begins = Q(endpoint__contains=replacement.old) | Q(probe_url__startswith=replacement.old)
    # Ordered by id, because rows are locked in this order everywhere.
    rows = selected.filter(begins).select_related("subscriber").order_by("pk")
    affected = [row for row in rows if _changes(row, replacement)]
    if len(affected) > MOST:
        raise RewriteError(
            f"{len(affected):,} subscriptions have such URLs, and {MOST:,} are possible at once."
        )
    return affected


def _changes(row: Subscription, replacement: Replacement) -> dict[str, tuple[str, str]]:
    old_values = {name: getattr(row, name) for name in _FIELDS}
    new_values = {name: replacement.of(before) for name, before in old_values.items()}
    return {
        name: (old_values[name], after) for name, after in new_values.items() if after is not None
    }


def _planned(
    rows: Iterable[Subscription], replacement: Replacement, refused: Mapping[str, str]
) -> RewritePlan:
    planned = [
        Rewritten(
            subscription=row,
            changes=[
                Change(
                    field=name,
                    before=before,
                    after=after,
                    refusal=_refusal(after, refused)
                    or _kept_refusal(row, name, after, replacement),
                )
                for name, (before, after) in _changes(row, replacement).items()
            ],
        )
        for row in rows
    ]
    content = [
        [
            row.subscription.pk,
            [[change.field, change.before, change.after, change.refusal] for change in row.changes],
        ]
        for row in planned
    ]
    return RewritePlan(rows=planned, seen=hashlib.sha256(orjson.dumps(content)).hexdigest())


def _refusal(after: str, refused: Mapping[str, str]) -> str:
    parsed = _parsed(after)
    return parsed if isinstance(parsed, str) else refused.get(parsed.url, "")


def _kept_refusal(row: Subscription, field: str, after: str, replacement: Replacement) -> str:
    if replacement.with_credentials or field != "endpoint":
        return ""
    return KEEPS_CREDENTIALS if takes_credentials(row, after) else ""


def _parsed(after: str) -> ParsedEndpoint | str:
    """Return the parsed endpoint, or the reason why it is invalid."""
    try:
        return parse_endpoint(after)
    except EndpointError as error:
        return str(error)


def _new_urls(
    rows: Iterable[Subscription], replacement: Replacement, built_in_receivers: Container[str]
) -> list[ParsedEndpoint]:
    """Return the new URLs whose addresses are checked: all but those of built-in receivers."""
    new_values = {after for row in rows for _, after in _changes(row, replacement).values()}
    parsed = [endpoint for after in new_values if not isinstance(endpoint := _parsed(after), str)]
    return [endpoint for endpoint in parsed if endpoint.url not in built_in_receivers]


def _refused(
    urls: Iterable[ParsedEndpoint], allowed_networks: Collection[Network]
) -> dict[str, str]:
    """Resolve the servers of these URLs; return the refused URLs with reasons."""
    servers_of = {endpoint.url: (endpoint.host, endpoint.port) for endpoint in urls}
    servers = sorted(set(servers_of.values()))
    if len(servers) > MOST_SERVERS:
        raise RewriteError(
            f"The new URLs are of {len(servers)} servers; choose fewer than {MOST_SERVERS}."
        )
    refused = refused_servers(servers, allowed_networks)
    return {url: refused[server] for url, server in servers_of.items() if server in refused}


def refused_servers(
    servers: Collection[Server], allowed_networks: Collection[Network]
) -> dict[Server, str]:
    """Resolve servers, several at a time; return the refused rows with reasons."""
    with ThreadPoolExecutor(max_workers=8) as threads:
        reasons = threads.map(lambda server: _why_refused(server, allowed_networks), servers)
        return {server: reason for server, reason in zip(servers, reasons, strict=True) if reason}


def _why_refused(server: Server, allowed_networks: Collection[Network]) -> str:
    try:
        for address in addresses_of(server[0]):
            check_address(address, allowed_networks=allowed_networks)
    except AddressRefusedError as error:
        return str(error)
    return ""


def _change(row: Rewritten, *, actor: str) -> None:
    endpoint = next(
        (entry.after for entry in row.changes if entry.field == "endpoint"),
        "",
    )
    takes = endpoint and takes_credentials(row.subscription, endpoint)
    for change in row.changes:
        setattr(row.subscription, change.field, change.after)
    row.subscription.save(update_fields=[*(change.field for change in row.changes), "updated_at"])
    record_change(
        actor=actor,
        action="changed",
        instance=row.subscription,
        before={change.field: recorded_address(change.before) for change in row.changes},
        after={change.field: recorded_address(change.after) for change in row.changes}
        | ({"credentials": "kept for the new server"} if takes else {}),
    )
