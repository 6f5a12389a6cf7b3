"""The event loop thread of calls: forks, stops, callers that give up, and its own end."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from delivery.calls import client_thread as threads
from delivery.calls.client_thread import ClientThread
from delivery.calls.http import MAX_ANSWER_BYTES
from delivery.senders.http.client import STOPPED, HttpClient
from delivery.states import OutcomeClass
from tests.support.receivers import Hold, Receiver
from tests.support.receivers.raw import raw_server
from tests.unit.delivery.calls.calling import called, outcome, read_request
from tests.unit.delivery.senders.http.test_client import LOOPBACK

# What a process does with the endpoint in its arguments.
PREAMBLE = """
import os, sys
import django
django.setup()
from tests.unit.delivery.calls.calling import called
"""
FORKING = f"""{PREAMBLE}
assert called(sys.argv[1]).answer is not None
child = os.fork()
assert called(sys.argv[1]).answer is not None
if child:
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert called(sys.argv[1]).answer is not None
"""
ENDING = f"""{PREAMBLE}
import threading
thread = threading.Thread(target=called, args=[sys.argv[1]], kwargs={{"timeout_seconds": 60.0}})
thread.daemon = True
thread.start()
sys.stdin.readline()
"""
INTERRUPTED = f"""{PREAMBLE}
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    called(sys.argv[1], timeout_seconds=60.0)
except KeyboardInterrupt:
    sys.exit(7)
"""


def process(script: str, url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, url],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def client() -> Iterator[ClientThread]:
    with closing(ClientThread(allowed_networks=LOOPBACK)) as client:
        yield client


def test_a_forked_process_calls_on_connections_of_its_own(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    forking = process(FORKING, hook.url)
    assert (forking.communicate(timeout=60)[1], forking.returncode) == ("", 0)
    assert len(hook.received) == 4


def test_a_process_ends_although_a_call_is_under_way(receiver: Receiver) -> None:
    hook, hold = receiver.endpoint("hook"), Hold()
    hook.always(hold)
    ending = process(ENDING, hook.url)
    hook.wait_for_count(1)
    assert (ending.communicate("\n", timeout=60)[1], ending.returncode) == ("", 0)
    hold.release()


def test_an_interrupted_call_ends_with_its_connection(receiver: Receiver) -> None:
    hook, hold = receiver.endpoint("hook"), Hold()
    hook.always(hold)
    interrupted = process(INTERRUPTED, hook.url)
    hook.wait_for_count(1)
    interrupted.send_signal(signal.SIGINT)
    assert (interrupted.communicate(timeout=60)[1], interrupted.returncode) == ("", 7)
    hold.release()


def test_a_call_under_way_when_its_client_closes_has_an_outcome(
    receiver: Receiver, client: ClientThread
) -> None:
    hook, hold = receiver.endpoint("hook"), Hold()
    hook.always(hold)
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(called, hook.url, client=client, timeout_seconds=60.0)
        hook.wait_for_count(1)
        client.close()
        ended = calling.result(timeout=60)
    assert (outcome(ended), ended.outcome.error) == (OutcomeClass.TIMEOUT, STOPPED)
    hold.release()


def test_an_answer_whose_body_was_under_way_then_is_not_passed_on(client: ClientThread) -> None:
    has_begun = threading.Event()

    def answer(connection: socket.socket) -> None:
        read_request(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MAX_ANSWER_BYTES)
        # More than the sockets hold, so the client has read the header.
        connection.sendall(b"x" * (MAX_ANSWER_BYTES - 1))
        has_begun.set()
        while connection.recv(65_536):
            continue

    with raw_server(answer) as port, ThreadPoolExecutor() as pool:
        url = f"http://127.0.0.1:{port}/"
        calling = pool.submit(called, url, client=client, timeout_seconds=60.0)
        assert has_begun.wait(60)
        client.close()
        ended = calling.result(timeout=60)
    assert (outcome(ended), ended.answer) == (OutcomeClass.TIMEOUT, None)
    assert ended.outcome.error == STOPPED


def test_a_client_that_was_closed_opens_again(receiver: Receiver, client: ClientThread) -> None:
    hook = receiver.endpoint("hook")
    called(hook.url, client=client)
    client.close()
    assert outcome(called(hook.url, client=client)) is OutcomeClass.SUCCESS


async def _break(client: HttpClient) -> None:
    raise SystemExit


def test_an_event_loop_that_broke_is_replaced(receiver: Receiver, client: ClientThread) -> None:
    hook = receiver.endpoint("hook")
    with pytest.raises(SystemExit):
        client.wait_for(_break, seconds=60)
    assert client._thread is not None
    client._thread.join()
    assert outcome(called(hook.url, client=client)) is OutcomeClass.SUCCESS


def test_a_caller_does_not_wait_for_an_event_loop_that_hangs(
    client: ClientThread, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "LATE_SECONDS", 0.1)
    hook, may_go_on, hangs = receiver.endpoint("hook"), threading.Event(), threading.Event()

    async def hang(_: HttpClient) -> None:
        hangs.set()
        may_go_on.wait()

    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(client.wait_for, hang, seconds=60)
        assert hangs.wait(60)
        ended = called(hook.url, client=client, timeout_seconds=0.1)
        may_go_on.set()
        hanging.result(timeout=60)
    assert ended.outcome.reason == "timed out: no answer within 0.1 s"
    assert hook.received == []


def test_endpoints_that_hang_delay_no_other_call(receiver: Receiver, client: ClientThread) -> None:
    slow, hold, fast = receiver.endpoint("slow"), Hold(), receiver.endpoint("fast")
    slow.always(hold)
    with ThreadPoolExecutor(50) as pool:
        hanging = [
            pool.submit(called, slow.url, client=client, timeout_seconds=60.0) for _ in range(50)
        ]
        slow.wait_for_count(50)
        assert outcome(called(fast.url, client=client)) is OutcomeClass.SUCCESS
        assert not any(call.done() for call in hanging)
        hold.release()
        assert {outcome(call.result()) for call in hanging} == {OutcomeClass.SUCCESS}


def test_a_call_whose_client_cannot_open_is_an_outcome(
    client: ClientThread, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    def refuse() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("uvloop.new_event_loop", refuse)
    ended = called(receiver.endpoint("hook").url, client=client)
    assert ended.outcome.reason == "unreachable: too many open files"
    monkeypatch.undo()
    assert outcome(called(receiver.endpoint("hook").url, client=client)) is OutcomeClass.SUCCESS
