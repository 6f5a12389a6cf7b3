"""An endpoint's time limit holds, whatever the endpoint does meanwhile."""

import socket
import time

import pytest

from delivery.states import OutcomeClass
from tests.support.receivers import OK, Behaviour, Drip, Hold, Receiver
from tests.support.receivers.raw import raw_server
from tests.unit.delivery.calls.calling import called, outcome, read_request

LATE = 2
# Far beyond the limit, and far before any part of this test would end by itself.
HANGS_MS = 20_000


@pytest.mark.parametrize("behaviour", [Hold(), Drip()], ids=lambda case: type(case).__name__)
def test_an_endpoint_is_not_waited_for_longer_than_its_time(
    receiver: Receiver, behaviour: Behaviour
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(behaviour)
    ended = called(hook.url, timeout_seconds=LATE)
    assert (outcome(ended), ended.answer) == (OutcomeClass.TIMEOUT, None)
    assert LATE * 1000 <= ended.outcome.duration_ms < HANGS_MS
    hook.always(OK)
    assert outcome(called(hook.url)) is OutcomeClass.SUCCESS


def drip_headers(connection: socket.socket) -> None:
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X-More: 1\r\n")
            time.sleep(0.05)
    except OSError:
        return


def test_headers_without_end_are_cut_too() -> None:
    with raw_server(drip_headers) as port:
        ended = called(f"http://127.0.0.1:{port}/", timeout_seconds=LATE)
    assert (outcome(ended), ended.answer) == (OutcomeClass.TIMEOUT, None)


def wait_for_more(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def drip_without_length(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nall is ")
    wait_for_more(connection)


def test_a_truncated_answer_does_not_pass_as_complete() -> None:
    with raw_server(drip_without_length) as port:
        ended = called(f"http://127.0.0.1:{port}/", timeout_seconds=LATE)
    assert (outcome(ended), ended.answer) == (OutcomeClass.TIMEOUT, None)
    assert ended.outcome.reason == "200: no whole answer within 2 s"
    assert ended.outcome.excerpt == b"all is "


def test_a_tls_handshake_that_never_ends_is_cut() -> None:
    with raw_server(wait_for_more) as port:
        ended = called(f"https://127.0.0.1:{port}/", timeout_seconds=LATE)
    assert outcome(ended) in (OutcomeClass.TIMEOUT, OutcomeClass.TLS)
    assert ended.outcome.duration_ms < HANGS_MS
