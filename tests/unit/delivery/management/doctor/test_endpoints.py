"""The doctor's checks of endpoints: DNS, networks, connection, certificate, test message."""

import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.utils import timezone

from delivery.calls.client_thread import ClientThread
from delivery.management.doctor.endpoints import (
    Host,
    check_endpoints,
    check_host,
    send_test_messages,
)
from delivery.management.doctor.findings import CheckResult, Severity
from subscriptions.models import Subscription, SubscriptionStatus
from subscriptions.values.resolver import Resolver
from tests.support import factories
from tests.support.receivers import Answer, Receiver
from tests.support.receivers.name_server import name_server
from tests.support.receivers.raw import full_queues, raw_server
from tests.support.tls import certificate_of_localhost
from tests.unit.delivery.calls.calling import trust

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]


@pytest.fixture
def client() -> Iterator[ClientThread]:
    with closing(ClientThread(allowed_networks=LOOPBACK)) as client:
        yield client


@pytest.fixture
def secured(request: pytest.FixtureRequest, tmp_path: Path, client: ClientThread) -> Iterator[int]:
    """The port of a TLS server that the client trusts; the parameter is the certificate's days."""
    certificate, context = certificate_of_localhost(tmp_path, days=request.param)

    def shake_hands(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            context.wrap_socket(connection, server_side=True).close()

    client.wait_for(lambda client: trust(client, certificate), seconds=10)
    with raw_server(shake_hands) as port:
        yield port


def failed(findings: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {found.check: found for found in findings if found.severity is Severity.FAILED}


@pytest.mark.parametrize(
    ("secured", "severity", "words"),
    [(400, Severity.OK, ""), (3, Severity.WARNING, "ends in 2 days")],
    indirect=["secured"],
)
def test_certificate_that_ends_soon_is_a_warning(
    secured: int, severity: Severity, words: str, client: ClientThread
) -> None:
    reached = check_host(Host("https", "localhost", secured), client=client)
    assert (reached.severity, words in reached.fault) == (severity, True), reached


@pytest.mark.parametrize("secured", [400], indirect=True)
def test_certificate_of_another_name_is_not_accepted(secured: int, client: ClientThread) -> None:
    reached = check_host(Host("https", "127.0.0.1", secured), client=client)
    assert reached.severity is Severity.FAILED
    assert "certificate" in reached.fault


def test_unknown_name_and_closed_port_fail(receiver: Receiver, client: ClientThread) -> None:
    receiver.refuse_connections()
    port = int(receiver.endpoint("hook").url.split(":")[2].split("/")[0])
    closed = check_host(Host("http", "127.0.0.1", port), client=client)
    unknown = check_host(Host("http", "nowhere.invalid", 80), client=client)
    assert closed.fault == f"connection refused (127.0.0.1:{port})"
    assert unknown.severity is Severity.FAILED


def test_a_host_is_reached_although_its_first_address_does_not_answer(receiver: Receiver) -> None:
    addresses = {"dual.test": ["127.0.0.66", "127.0.0.1"]}
    with (
        full_queues("127.0.0.66", port=receiver.port),
        name_server(addresses) as names,
        closing(
            ClientThread(allowed_networks=LOOPBACK, resolver=Resolver(servers=[names.address]))
        ) as client,
    ):
        reached = check_host(Host("http", "dual.test", receiver.port), client=client)
    assert (reached.severity, reached.fault) == (Severity.OK, "")


@pytest.mark.django_db
def test_networks_that_are_needed_are_listed_once_and_nothing_is_sent(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    for _ in range(5):
        factories.subscription(endpoint=hook.url)
    factories.subscription(endpoint="http://10.1.2.2/hook")
    factories.subscription(
        endpoint="PATCH:http://10.1.2.3:8080/hook", status=SubscriptionStatus.SHADOW
    )
    factories.subscription(endpoint="http://10.9.9.9/hook", status=SubscriptionStatus.INACTIVE)
    findings = list(check_endpoints(allowed_networks=LOOPBACK))
    assert failed(findings)["networks"].text == "INTURN_ALLOWED_NETWORKS lacks 10.1.2.2/31"
    assert "--demo" not in failed(findings)["networks"].advice
    assert "--demo" in failed(check_endpoints(allowed_networks=()))["networks"].advice
    assert findings[-1].text == "1 of 3 hosts are reached"
    assert findings[-1].severity is Severity.WARNING
    assert hook.received == []


@pytest.mark.django_db
def test_hosts_of_which_none_is_reached_are_not_ok(receiver: Receiver) -> None:
    def summary() -> CheckResult:
        return list(check_endpoints(allowed_networks=LOOPBACK))[-1]

    assert summary().text == "no subscription has a host to reach"
    receiver.refuse_connections()
    factories.subscription(endpoint=receiver.endpoint("hook").url)
    factories.subscription(endpoint="http://10.1.2.2/hook")
    assert (summary().severity, summary().text) == (Severity.FAILED, "0 of 2 hosts are reached")
    Subscription.objects.filter(endpoint="http://10.1.2.2/hook").delete()
    receiver.accept_connections()
    assert (summary().severity, summary().text) == (Severity.OK, "1 of 1 hosts are reached")


@pytest.mark.django_db
def test_test_messages_carry_the_sample_and_report_the_answer(receiver: Receiver) -> None:
    well, busy = receiver.endpoint("well"), receiver.endpoint("busy")
    busy.always(Answer(500))
    event_type = factories.event_type(sample={"number": 7})
    factories.subscription("a", endpoint=well.url, event_type=event_type)
    factories.subscription("b", endpoint=busy.url, event_type=event_type)
    findings = list(send_test_messages(actor="doctor", now=timezone.now()))
    assert [found.severity for found in findings] == [Severity.OK, Severity.FAILED]
    assert well.received[0].body == b'{"number": 7}'
    assert "500" in findings[1].text


@pytest.mark.django_db
def test_inturns_own_subscription_for_callbacks_is_left_out() -> None:
    own = factories.subscriber("Inturn.Callbacks")
    factories.subscription("callbacks", subscriber=own, endpoint="https://callback.invalid/")
    assert [found.severity for found in check_endpoints(allowed_networks=LOOPBACK)] == [Severity.OK]
    assert list(send_test_messages(actor="doctor", now=timezone.now())) == []
