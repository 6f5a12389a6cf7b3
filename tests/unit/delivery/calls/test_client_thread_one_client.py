"""Deliveries, SYNC calls, test messages, probes and alerts reach an endpoint in the same way.

Each case is tried in every way, and the endpoint gets, and the outcome says, the same.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from delivery.states import OutcomeClass
from tests.support.receivers import Receiver
from tests.support.receivers.raw import BLANK_LINE, full_queues, raw_server
from tests.unit.delivery.calls.ways import OK, Ways, same, saved

LENGTH = re.compile(rb"(?i)\r\ncontent-length: ([0-9]+)")


@contextmanager
def recording() -> Iterator[tuple[int, list[bytes]]]:
    """A receiver that answers 200; yield its port and the headers of its requests."""
    headers: list[bytes] = []

    def talk(connection: socket.socket) -> None:
        # It keeps its connections, as its answer says.
        received = b""
        while True:
            while BLANK_LINE not in received:
                if not (part := connection.recv(65_536)):
                    return
                received += part
            header, _, received = received.partition(BLANK_LINE)
            headers.append(header)
            length = LENGTH.search(header)
            missing = int(length[1]) if length else 0
            while len(received) < missing and (part := connection.recv(65_536)):
                received += part
            received = received[missing:]
            connection.sendall(OK)

    with raw_server(talk) as port:
        yield port, headers


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/a%2fb",
        "/a%2Fb",
        "/%e4%f6",
        "/a%zz%",
        "/a%20b+c",
        "/?",
        "/hook?",
        "/hook??",
        "/hook?d=[1]",
        "/hook?sig=abc%2b%2f%3d",
        "/hook?a=b&&c=&d",
        "//",
        "//hook//a/",
        "/./a/../b/.",
        "/%2e%2e/a",
        "/hook?next=http://other/?x=1",
        "/;v=1,2/(a)'b'!*~@:$",
        "/%7Ename?q=%7e",
        "/a%00b",
    ],
)
def test_the_target_is_sent_as_it_was_saved(ways: Ways, target: str) -> None:
    with recording() as (port, headers):
        ways.reach(saved(f"http://127.0.0.1:{port}{target}"))
    lines = [header.split(b"\r\n")[0] for header in headers]
    assert {line.split(b" ")[1] for line in lines} == {target.encode()}
    assert [line.split(b" ")[0] for line in lines] == [b"POST"] * 3 + [b"GET", b"POST"]


def test_method_and_host_are_sent_as_they_were_saved(ways: Ways) -> None:
    with recording() as (port, headers):
        ways.outcomes(saved(f"PATCH:http://b\xfccher.test:{port}/hook"))
    lines = {tuple(header.split(b"\r\n")[:2]) for header in headers}
    host = f"Host: xn--bcher-kva.test:{port}".encode()
    assert lines == {(b"PATCH /hook HTTP/1.1", host)}


def test_no_way_uses_the_proxy_of_the_environment(
    ways: Ways, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = receiver.endpoint("proxy")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    with recording() as (port, headers):
        ways.reach(saved(f"http://well.test:{port}/hook"))
    assert len(headers) == 5
    assert proxy.received == []


@pytest.mark.parametrize(
    ("name", "dead"),
    [
        ("dual.test", ["127.0.0.66"]),
        ("fourth.test", ["127.0.0.66", "127.0.0.67", "127.0.0.68"]),
    ],
)
def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    ways: Ways, receiver: Receiver, name: str, dead: list[str]
) -> None:
    hook = receiver.endpoint("hook")
    with full_queues(*dead, port=receiver.port):
        ways.reach(saved(f"http://{name}:{receiver.port}/hook", timeout_seconds=5.0))
    assert len(hook.received) == 5


def test_names_without_a_living_address_time_out_alike(ways: Ways, receiver: Receiver) -> None:
    with full_queues("127.0.0.66", "127.0.0.67", port=receiver.port):
        to = saved(f"http://dead.test:{receiver.port}/", timeout_seconds=1.0)
        assert same(ways.outcomes(to)) == (OutcomeClass.TIMEOUT, None, "no connection within 1 s")


@pytest.mark.parametrize(
    ("url", "outcome", "words"),
    [
        ("http://gone.test/", OutcomeClass.UNREACHABLE, "the host's name has no address"),
        ("http://127.0.0.1:1/", OutcomeClass.UNREACHABLE, "connection refused (127.0.0.1:1)"),
        ("http://10.1.2.3/", OutcomeClass.REFUSED_ADDRESS, "The address 10.1.2.3 is refused"),
        ("https://private.test/", OutcomeClass.REFUSED_ADDRESS, "The address 10.1.2.3 is refused"),
    ],
)
def test_connections_that_cannot_be_made_have_the_same_words(
    ways: Ways, url: str, outcome: OutcomeClass, words: str
) -> None:
    found, status_code, error = same(ways.outcomes(saved(url)))
    assert (found, status_code) == (outcome, None)
    assert words in error
