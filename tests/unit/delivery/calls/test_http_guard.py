"""Calls connect only to allowed addresses, and only to servers with a valid certificate."""

import contextlib
import ipaddress
import socket
from contextlib import closing
from pathlib import Path

import pytest

from delivery.calls.client_thread import ClientThread
from delivery.states import OutcomeClass
from subscriptions.values.resolver import Resolver
from tests.support.receivers import Receiver
from tests.support.receivers.name_server import name_server
from tests.support.receivers.raw import raw_server
from tests.support.tls import certificate_of_localhost
from tests.unit.delivery.calls.calling import called, outcome, read_request, trusting


def test_a_server_without_tls_fails_as_tls(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    assert outcome(called(hook.url.replace("http:", "https:"))) is OutcomeClass.TLS


def test_a_forbidden_address_is_never_connected_to(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    ended = called(hook.url, allowed=[])
    assert outcome(ended) is OutcomeClass.REFUSED_ADDRESS
    assert "127.0.0.1" in ended.outcome.error
    assert hook.received == []


def test_a_name_that_leads_to_a_forbidden_address_is_refused_though_a_proxy_is_set(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = receiver.endpoint("hook")
    monkeypatch.setenv("http_proxy", hook.url)
    assert (
        outcome(called(hook.url.replace("127.0.0.1", "localhost"), allowed=[]))
        is OutcomeClass.REFUSED_ADDRESS
    )
    assert hook.received == []


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(receiver: Receiver) -> None:
    """The second answer of a resolver does not matter: it is queried once."""
    hook = receiver.endpoint("hook")
    known = {"rebinding.example": ["127.0.0.1"]}
    only = [ipaddress.ip_network("127.0.0.1/32")]
    url = hook.url.replace("127.0.0.1", "rebinding.example")
    with (
        name_server(known) as names,
        closing(
            ClientThread(allowed_networks=only, resolver=Resolver(servers=[names.address]))
        ) as client,
    ):
        assert outcome(called(url, client=client)) is OutcomeClass.SUCCESS
        known["rebinding.example"] = ["127.0.0.2"]
        # The kept connection was checked when it was opened.
        assert outcome(called(url, client=client)) is OutcomeClass.SUCCESS
    with (
        name_server(known) as names,
        closing(
            ClientThread(allowed_networks=only, resolver=Resolver(servers=[names.address]))
        ) as client,
    ):
        assert outcome(called(url, client=client)) is OutcomeClass.REFUSED_ADDRESS


def test_a_certificate_is_verified_against_the_name(tmp_path: Path) -> None:
    certificate, context = certificate_of_localhost(tmp_path)

    def talk(connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as secured,
        ):
            read_request(secured)
            secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with raw_server(talk) as port, trusting(certificate) as client:
        ended = called(f"https://localhost:{port}/", client=client)
        assert ended.answer is not None
        assert ended.answer.body == b"ok"
        ended = called(f"https://127.0.0.1:{port}/", client=client)
    assert (outcome(ended), ended.answer) == (OutcomeClass.TLS, None)
    assert "certificate" in ended.outcome.error
