"""An outcome's error names the fault, and neither the receiver's URL nor its data."""

import asyncio
import socket

import pytest

from delivery.senders.http.client import HttpClient
from delivery.states import OutcomeClass
from tests.support.receivers.raw import raw_server, read_header
from tests.unit.delivery.calls.calling import read_request
from tests.unit.delivery.senders.http.test_client import LOOPBACK, send

SECRET = "T0KEN"
SENT = b"SENTBYTES"
PATH = f"/{SECRET}/hook?key={SECRET}"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (SENT, "its answer is not HTTP"),
        (SENT + b"\r\n\r\n", "its answer is not HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SENT, "its answer is not HTTP"),
        (b"HTTP/1.1 20 OK\r\n\r\n" + SENT, "its answer is not HTTP"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "its answer is not HTTP"),
        (
            b"HTTP/1.1 200 OK\r\nX: " + SENT * 8000 + b"\r\n\r\n",
            "it sent more than 64 KiB before an answer",
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + SENT, "the connection was closed before an answer came"),
        (b"", "the connection was closed before an answer came"),
    ],
)
def test_an_invalid_answer_is_named_without_quoting_it(answer: bytes, words: str) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)

    with raw_server(talk) as port:
        ended = send(f"http://127.0.0.1:{port}{PATH}", timeout_seconds=10.0)
    assert (ended.outcome, ended.error) == (OutcomeClass.UNREACHABLE, words)


def test_people_who_may_see_payloads_see_the_invalid_answer() -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(SENT + b"\r\n\r\n")

    with raw_server(talk) as port:
        ended = send(f"http://127.0.0.1:{port}{PATH}", timeout_seconds=10.0)
    assert SENT in ended.excerpt


@pytest.mark.parametrize(
    ("url", "outcome", "words"),
    [
        ("http://no-such-name.invalid", OutcomeClass.UNREACHABLE, "(no-such-name.invalid:80)"),
        ("http://127.0.0.1:1", OutcomeClass.UNREACHABLE, "connection refused (127.0.0.1:1)"),
        ("http://10.1.2.3", OutcomeClass.REFUSED_ADDRESS, "10.1.2.3"),
    ],
)
def test_a_failed_connection_is_reported_without_the_url(
    url: str, outcome: OutcomeClass, words: str
) -> None:
    ended = send(f"{url}{PATH}")
    assert ended.outcome is outcome
    assert words in ended.error
    assert SECRET not in ended.error


def test_a_server_without_tls_is_reported() -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 " + SENT + b"\r\n\r\n")

    with raw_server(talk) as port:
        ended = send(f"https://127.0.0.1:{port}{PATH}", timeout_seconds=10.0)
        assert ended.outcome is OutcomeClass.TLS
        assert ended.error.startswith("no TLS connection")
        assert ended.error.endswith(f"(127.0.0.1:{port})")


def test_a_probe_uses_the_same_words() -> None:
    def talk(connection: socket.socket) -> None:
        read_header(connection)
        connection.sendall(SENT + b"\r\n\r\n")

    async def probe(port: int) -> str:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            return await client.probe(f"http://127.0.0.1:{port}{PATH}", seconds=10.0)

    with raw_server(talk) as port:
        assert asyncio.run(probe(port)) == "its answer is not HTTP"


def test_our_own_fault_is_reported_without_values(caplog: pytest.LogCaptureFixture) -> None:
    with raw_server(read_header) as port:
        ended = send(f"http://127.0.0.1:{port}/", headers={"X-Key": f"{SECRET}\n"})
    assert ended.outcome is OutcomeClass.UNSENDABLE
    assert ended.error == "Inturn could not send it: ValueError, see its log"
    assert "an error of Inturn's own" in caplog.text
