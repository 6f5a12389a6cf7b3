"""Checks of the endpoints of subscriptions: DNS, networks, TCP, TLS, test messages."""

import ipaddress
import json
import ssl
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.db.models import QuerySet

from delivery.calls.client_thread import ClientThread, client_thread
from delivery.calls.trial import Trial, send_test
from delivery.management.doctor.findings import CheckResult, Severity
from delivery.senders.http.exchange import CONNECT_SECONDS
from delivery.states import OutcomeClass
from subscriptions.models import Mode, Subscription, SubscriptionStatus
from subscriptions.values.addresses import Network, is_allowed
from subscriptions.values.endpoints import INTERNAL, parse_endpoint
from subscriptions.values.names import RESERVED_PREFIX
from subscriptions.values.resolver import UnresolvedError

CERTIFICATE_WARNING_DAYS = 14
_HOSTS_AT_ONCE = 16
_SHOWN_SUBSCRIPTIONS = 3


@dataclass(frozen=True, slots=True, order=True)
class Host:
    """A host and port to connect to."""

    scheme: str
    name: str
    port: int

    @property
    def url(self) -> str:
        return f"{self}/"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reached:
    """The result for a host.

    `refused` are the addresses outside INTURN_ALLOWED_NETWORKS; `fault` is empty if it is
    reachable.
    """

    host: Host
    severity: Severity
    fault: str = ""
    refused: tuple[str, ...] = ()


def check_endpoints(
    *, allowed_networks: Sequence[Network], built_in_receivers: Container[str] = ()
) -> Iterator[CheckResult]:
    """Connect once to each host of subscriptions other than INACTIVE, without sending anything.

    HELD and SHADOW subscriptions will send later, so their hosts are checked too. Built-in
    receivers are left out: they are this installation, which is checked by itself.
    """
    users = _subscriptions_by_host(built_in_receivers)
    client = client_thread(allowed_networks=allowed_networks)
    with ThreadPoolExecutor(max_workers=_HOSTS_AT_ONCE) as pool:
        reached = list(pool.map(partial(check_host, client=client), sorted(users)))
    yield from _networks(reached)
    for reached_host in reached:
        if reached_host.fault:
            yield CheckResult(
                check="endpoint",
                severity=reached_host.severity,
                text=f"{reached_host.host}: {reached_host.fault}",
                advice=f"Used by {_names(users[reached_host.host])}.",
            )
    yield _reached_of_all(reached)


def _reached_of_all(hosts: Collection[Reached]) -> CheckResult:
    if not hosts:
        return CheckResult(
            check="endpoints", severity=Severity.OK, text="no subscription has a host to reach"
        )
    well = sum(host.severity is not Severity.FAILED for host in hosts)
    text = f"{well} of {len(hosts)} hosts are reached"
    if well == len(hosts):
        return CheckResult(check="endpoints", severity=Severity.OK, text=text)
    severity = Severity.WARNING if well else Severity.FAILED
    advice = "The lines of check `endpoint` and `networks` say what to do for each of the others."
    return CheckResult(check="endpoints", severity=severity, text=text, advice=advice)


def check_host(host: Host, *, client: ClientThread) -> Reached:
    """Resolve, check and connect to a host as a sender does, in at most CONNECT_SECONDS."""
    try:
        addresses = client.resolver.addresses_of(host.name)
    except UnresolvedError as error:
        return Reached(host, Severity.FAILED, str(error))
    refused = tuple(
        address
        for address in addresses
        if not is_allowed(address, allowed_networks=client.allowed_networks)
    )
    if refused:
        return Reached(host, Severity.FAILED, f"{', '.join(refused)} may not be called", refused)
    fault, certificate = client.wait_for(
        lambda client: client.reach(host.url, seconds=CONNECT_SECONDS), seconds=CONNECT_SECONDS
    )
    if fault:
        return Reached(host, Severity.FAILED, fault)
    days = _days_left(certificate)
    if days is not None and days < CERTIFICATE_WARNING_DAYS:
        return Reached(host, Severity.WARNING, f"its certificate ends in {days} days")
    return Reached(host, Severity.OK)


def _days_left(certificate: Mapping[str, Any]) -> int | None:
    if "notAfter" not in certificate:
        return None
    ends_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    return (ends_at - datetime.now(UTC)).days


def send_test_messages(*, actor: str, now: datetime) -> Iterator[CheckResult]:
    """Send the event type's sample as a test message to each ACTIVE subscription, in turn."""
    for subscription in _pushing().filter(status=SubscriptionStatus.ACTIVE):
        sample = subscription.event_type.sample
        body = json.dumps({} if sample is None else sample, ensure_ascii=False).encode()
        try:
            trial = Trial(content_type=subscription.event_type.content_type, body=body)
            tested = send_test(subscription, trial, actor=actor, now=now)
        except Subscription.DoesNotExist:
            continue
        outcome = tested.called.outcome
        is_well = outcome.outcome is OutcomeClass.SUCCESS
        yield CheckResult(
            check="test message",
            severity=Severity.OK if is_well else Severity.FAILED,
            text=f"{subscription}: {outcome.reason}, after {outcome.duration_ms} ms",
        )


def _networks(reached: Iterable[Reached]) -> Iterator[CheckResult]:
    """Yield a finding with all networks needed but not allowed."""
    needed = [
        ipaddress.ip_network(address)
        for reached_host in reached
        for address in reached_host.refused
    ]
    if not needed:
        return
    ipv4 = ipaddress.collapse_addresses(
        network for network in needed if isinstance(network, ipaddress.IPv4Network)
    )
    ipv6 = ipaddress.collapse_addresses(
        network for network in needed if isinstance(network, ipaddress.IPv6Network)
    )
    collapsed = [str(network) for network in (*ipv4, *ipv6)]
    advice = (
        "Add these networks, or wider ones that hold them, and restart Inturn; "
        "or correct the endpoints."
    )
    if any(network.is_loopback for network in needed):
        advice += " After `up --demo`, which allows 127.0.0.0/8, set it for this command only."
    yield CheckResult(
        check="networks",
        severity=Severity.FAILED,
        text=f"INTURN_ALLOWED_NETWORKS lacks {', '.join(collapsed)}",
        advice=advice,
    )


def _subscriptions_by_host(built_in_receivers: Container[str]) -> Mapping[Host, list[Subscription]]:
    users: dict[Host, list[Subscription]] = defaultdict(list)
    for subscription in _pushing().exclude(status=SubscriptionStatus.INACTIVE):
        endpoint = parse_endpoint(subscription.endpoint)
        if endpoint.url in built_in_receivers:
            continue
        scheme = urlsplit(endpoint.url).scheme
        users[Host(scheme, endpoint.host, endpoint.port)].append(subscription)
    return users


def _pushing() -> QuerySet[Subscription]:
    return (
        Subscription.objects.filter(mode=Mode.PUSH)
        # A script answers there; no connection is made.
        .exclude(endpoint=INTERNAL)
        # Inturn's own subscription for callbacks: each delivery has a callback URL.
        .exclude(subscriber__name__startswith=RESERVED_PREFIX)
        .select_related("subscriber", "event_type")
        .order_by("subscriber__name", "name")
    )


def _names(subscriptions: Collection[Subscription]) -> str:
    shown = ", ".join(
        str(subscription) for subscription in list(subscriptions)[:_SHOWN_SUBSCRIPTIONS]
    )
    more = len(subscriptions) - _SHOWN_SUBSCRIPTIONS
    return f"{shown} and {more} more" if more > 0 else shown
