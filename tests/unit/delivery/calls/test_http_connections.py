"""Connections are kept alive, and one call is one request on one of them."""

import threading

from aiohttp import web

from delivery.calls.http import Called
from delivery.states import OutcomeClass
from tests.support.receivers import Answer, Close, Hold, Receiver
from tests.unit.delivery.calls.calling import called, outcome


class Peers:
    """Records the client port of each request: a reused connection has the same port."""

    status = 200

    def __init__(self) -> None:
        self.ports: list[int] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        self.ports.append(request.transport.get_extra_info("peername")[1])
        return web.Response(body=b"yes")


def test_a_connection_is_used_again(receiver: Receiver) -> None:
    hook, peers = receiver.endpoint("hook"), Peers()
    hook.always(peers)
    for _ in range(5):
        assert outcome(called(hook.url)) is OutcomeClass.SUCCESS
    assert len(set(peers.ports)) == 1


def test_threads_that_call_at_once_do_not_share_one(receiver: Receiver) -> None:
    hook, hold = receiver.endpoint("hook"), Hold()
    hook.always(hold)
    ended: list[Called] = []
    threads = [
        threading.Thread(target=lambda: ended.append(called(hook.url, timeout_seconds=20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    hook.wait_for_count(4)
    hold.release()
    for thread in threads:
        thread.join()
    assert [outcome(call) for call in ended] == [OutcomeClass.SUCCESS] * 4


def test_a_connection_closed_meanwhile_is_not_reused(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    called(hook.url)
    receiver.refuse_connections()
    receiver.accept_connections()
    assert outcome(called(hook.url)) is OutcomeClass.SUCCESS


def test_cookies_are_not_kept(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(200, headers={"Set-Cookie": "a=b; Path=/"}))
    called(hook.url)
    called(hook.url)
    assert "Cookie" not in hook.received[1].headers


def test_a_closed_connection_is_reported_and_the_call_not_repeated(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Close())
    assert outcome(called(hook.url)) is OutcomeClass.UNREACHABLE
    assert len(hook.received) == 1


def test_a_refused_connection_has_a_readable_error(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    receiver.refuse_connections()
    ended = called(hook.url)
    assert ended.outcome.reason == f"unreachable: connection refused (127.0.0.1:{receiver.port})"


def test_a_name_without_address_has_a_readable_error() -> None:
    ended = called("http://nowhere.invalid/")
    assert (
        ended.outcome.reason == "unreachable: the host's name has no address (nowhere.invalid:80)"
    )
