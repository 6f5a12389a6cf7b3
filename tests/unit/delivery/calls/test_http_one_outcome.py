"""An answer, or a fault, has the same outcome for a delivery, a test message and a SYNC call."""

import contextlib
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from delivery.states import OutcomeClass
from subscriptions.values.resolver import Resolver
from tests.support.receivers.name_server import name_server
from tests.support.receivers.raw import raw_server, read_header
from tests.support.tls import certificate_of_localhost
from tests.unit.delivery.calls.calling import read_request
from tests.unit.delivery.calls.ways import NAMES, OK, Ways, kind, same, saved


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * 20 + OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        OK,
        OK.replace(b"200", b"404"),
        OK.replace(b"200", b"429"),
        OK.replace(b"200", b"503"),
        OK.replace(b"200 OK", b"307 Moved\r\nLocation: http://127.0.0.1:1/"),
        b"HTTP/1.0 200 OK\r\n\r\nyes",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more",
        b"HTTP/1.1 500 Oh\r\nX-" + b"y" * 20_000 + b": z\r\nContent-Length: 2\r\n\r\nno",
    ],
)
def test_answers_have_the_same_outcome(ways: Ways, answer: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)

    with raw_server(talk) as port:
        outcomes = ways.outcomes(saved(f"http://127.0.0.1:{port}/"))
    assert same(outcomes)[0] is not OutcomeClass.UNSENDABLE


@pytest.mark.parametrize(
    ("answer", "note", "of_sync"),
    [
        (
            b"Content-Length: 100\r\n\r\npart",
            "a body that ends early",
            (OutcomeClass.UNREACHABLE, 200, "its answer broke off"),
        ),
        (
            b"Transfer-Encoding: chunked\r\n\r\n64\r\npart",
            "a body that ends early",
            (OutcomeClass.UNREACHABLE, 200, "its answer broke off"),
        ),
        (
            b"Content-Length: 4\r\nContent-Length: 5\r\n\r\npart",
            "an invalid Content-Length",
            (
                OutcomeClass.SERVER_ERROR,
                200,
                "nobody can tell which bytes are its body; "
                "its answer is malformed: an invalid Content-Length",
            ),
        ),
        (
            b"Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\nzz\r\n",
            "an invalid chunk",
            (
                OutcomeClass.SERVER_ERROR,
                200,
                "nobody can tell which bytes are its body; "
                "its answer is malformed: an invalid chunk",
            ),
        ),
    ],
    ids=["length", "chunk", "two lengths", "no chunk"],
)
def test_only_a_sync_call_needs_the_whole_answer(
    ways: Ways,
    answer: bytes,
    note: str,
    of_sync: tuple[OutcomeClass, int, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + answer)
        if note == "a body that ends early":
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            continue

    with raw_server(talk) as port:
        outcomes = ways.outcomes(saved(f"http://127.0.0.1:{port}/"))
    well = OutcomeClass.SUCCESS, 200, f"its answer is malformed: {note}"
    assert {way: kind(outcome) for way, outcome in outcomes.items()} == {
        "PUSH": well,
        "test": well,
        "SYNC": of_sync,
    }
    assert {outcomes[way].excerpt for way in ("test", "SYNC")} == {b"part"}
    assert not caplog.records


def test_a_receiver_without_an_answer_times_out_alike(ways: Ways) -> None:
    def hold(connection: socket.socket) -> None:
        while connection.recv(65_536):
            continue

    with raw_server(hold) as port:
        to = saved(f"http://127.0.0.1:{port}/", timeout_seconds=1.0)
        assert same(ways.outcomes(to)) == (OutcomeClass.TIMEOUT, None, "no answer within 1 s")


def demand_client_certificate(context: ssl.SSLContext, version: ssl.TLSVersion) -> None:
    context.minimum_version = context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED


def demand_no_known_cipher(context: ssl.SSLContext) -> None:
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("PSK")


@pytest.mark.parametrize(
    "demand",
    [
        partial(demand_client_certificate, version=ssl.TLSVersion.TLSv1_2),
        partial(demand_client_certificate, version=ssl.TLSVersion.TLSv1_3),
        demand_no_known_cipher,
    ],
    ids=["certificate, TLS 1.2", "certificate, TLS 1.3", "cipher"],
)
def test_tls_that_fails_has_the_same_words(
    tmp_path: Path, demand: Callable[[ssl.SSLContext], None]
) -> None:
    certificate, context = certificate_of_localhost(tmp_path)
    demand(context)
    with raw_server(_secured(context)) as port, name_server(NAMES) as names:
        ways = Ways(Resolver(servers=[names.address]), certificate)
        outcome, status_code, error = same(ways.outcomes(saved(f"https://localhost:{port}/")))
    assert (outcome, status_code) == (OutcomeClass.TLS, None)
    assert error.startswith("no TLS connection")


def _secured(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as secured,
        ):
            read_header(secured)
            secured.sendall(OK)

    return talk
