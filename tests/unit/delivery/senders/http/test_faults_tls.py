"""Faults of TLS are named as such, also when they arrive after the handshake."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import uvloop

from delivery.outcome import Outcome
from delivery.senders.http.client import HttpClient
from delivery.senders.http.faults import fault_of
from delivery.states import OutcomeClass
from tests.support.receivers.raw import raw_server, read_header
from tests.support.tls import certificate_of_localhost
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint

Talk = Callable[[ssl.SSLSocket], None]


@contextmanager
def tls_server(context: ssl.SSLContext, talk: Talk) -> Iterator[int]:
    def secure(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            talk(secured)

    with raw_server(secure) as port:
        yield port


def send(port: int, certificate: Path, *, body: bytes = b"{}", host: str = "localhost") -> Outcome:
    async def sending() -> Outcome:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            client.exchange.connector._ssl = ssl.create_default_context(cafile=certificate)
            to = endpoint(f"https://{host}:{port}/hook", timeout_seconds=20.0)
            return await client.send(replace(PARCEL, body=body), to)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(sending())


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (ssl.TLSVersion.TLSv1_3, "no TLS connection: tlsv13 alert certificate required"),
        (ssl.TLSVersion.TLSv1_2, "no TLS connection: sslv3 alert handshake failure"),
    ],
)
def test_a_receiver_that_demands_a_client_certificate_is_understood(
    tmp_path: Path, version: ssl.TLSVersion, words: str
) -> None:
    certificate, context = certificate_of_localhost(tmp_path)
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED

    with tls_server(context, read_header) as port:
        ended = send(port, certificate)
    assert ended.outcome is OutcomeClass.TLS
    assert ended.error.startswith(words)


def alert(words: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {words}] (_ssl.c:2580)")
    error.reason = words
    return error


def wrapped(error: BaseException) -> Exception:
    try:
        try:
            raise error
        except BaseException as inner:
            raise aiohttp.ClientOSError(*inner.args) from inner
    except aiohttp.ClientOSError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "outcome", "words"),
    [
        (alert("TLSV1_ALERT_UNKNOWN_CA"), "TLS", "no TLS connection: tlsv1 alert unknown ca"),
        (
            wrapped(alert("TLSV1_ALERT_ACCESS_DENIED")),
            "TLS",
            "no TLS connection: tlsv1 alert access denied",
        ),
        (ssl.SSLError(1), "TLS", "no TLS connection"),
        (
            ssl.SSLEOFError(8, "EOF occurred in violation of protocol"),
            "UNREACHABLE",
            "the connection was closed before an answer came",
        ),
        (
            wrapped(ssl.SSLZeroReturnError(6, "TLS/SSL connection has been closed (EOF)")),
            "UNREACHABLE",
            "the connection was closed before an answer came",
        ),
    ],
)  # fmt: skip
def test_the_numbers_of_openssl_are_not_those_of_the_system(
    error: Exception, outcome: str, words: str
) -> None:
    assert fault_of(error, connect_seconds=5, seconds=30) == (outcome, words)


@pytest.mark.parametrize("status", [200, 413])
@pytest.mark.parametrize("size", [2, 20_000, 1_000_000])
def test_an_answer_that_does_not_wait_for_the_body_counts(
    tmp_path: Path, status: int, size: int
) -> None:
    """Unless the receiver closes at once: then the kernel discards the answer with its reset."""
    certificate, context = certificate_of_localhost(tmp_path)

    def answer(secured: ssl.SSLSocket) -> None:
        secured.recv(100)
        secured.sendall(
            b"HTTP/1.1 %d Now\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status
        )
        # Until the sender has read it.
        while secured.recv(65_536):
            continue

    with tls_server(context, answer) as port:
        ended = send(port, certificate, body=b"x" * size)
    assert (ended.status_code, ended.error) == (status, "")


def test_a_dot_after_the_host_is_no_other_name(tmp_path: Path) -> None:
    certificate, context = certificate_of_localhost(tmp_path)

    def answer(secured: ssl.SSLSocket) -> None:
        read_header(secured)
        secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with tls_server(context, answer) as port:
        ended = send(port, certificate, host="localhost.")
    assert (ended.status_code, ended.error) == (204, "")
