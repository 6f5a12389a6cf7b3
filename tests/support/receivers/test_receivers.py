"""The receivers themselves, on which the other tests rely."""

import contextlib
import gc
import socket
import threading

import pytest
import requests

from tests.support.receivers import OK, Answer, Behaviour, Close, Drip, Hold, Receiver, Stream

# No answer takes so long.
LONG = 30


def post(url: str, body: bytes = b"{}", headers: dict[str, str] | None = None) -> int:
    return requests.post(url, data=body, headers=headers, timeout=LONG).status_code


def test_a_receiver_records_every_request(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    post(f"{endpoint.url}?x=1", b"first", {"webhook-id": "msg_1"})
    post(receiver.endpoint("b").url, b"elsewhere")
    received = endpoint.wait_for_count(1)
    assert [(request.body, request.path, request.id) for request in received] == [
        (b"first", "/a?x=1", "msg_1")
    ]


def test_a_receiver_gives_its_scripted_answers_first(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.next(Answer(500), Answer(503, headers={"Retry-After": "1"}))
    assert [post(endpoint.url) for _ in range(3)] == [500, 503, 200]
    assert [request.status for request in endpoint.accepted] == [200]


def test_a_script_sees_how_often_an_id_was_tried(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.follow(lambda received: Answer(500) if received.tries == 1 else OK)
    ids = ["msg_1", "msg_1", "msg_2", "msg_1"]
    assert [post(endpoint.url, headers={"webhook-id": id}) for id in ids] == [500, 200, 500, 200]


def test_a_held_request_is_answered_once_released(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    hold = Hold()
    endpoint.always(hold)
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(post(endpoint.url)))
    asking.start()
    endpoint.wait_for_count(1)
    assert answers == []
    hold.release()
    asking.join()
    assert answers == [200]


def read_patiently(url: str) -> None:
    """Read until more came than a well-behaved client would ever read."""
    with requests.post(url, data=b"", timeout=0.3, stream=True) as response:
        read = 0
        for part in response.iter_content(10_000):
            read += len(part)
            if read > 1_000_000:
                raise requests.Timeout


@pytest.mark.parametrize(
    "behaviour", [Hold(), Close(), Drip(), Stream()], ids=lambda each: type(each).__name__
)
def test_a_receiver_can_misbehave(receiver: Receiver, behaviour: Behaviour) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(behaviour)
    with pytest.raises((requests.ConnectionError, requests.Timeout)):
        read_patiently(endpoint.url)
    assert len(endpoint.wait_for_count(1)) == 1


def test_a_receivers_port_can_be_closed_and_reopened(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    with requests.Session() as session:
        session.post(endpoint.url, timeout=LONG)
        receiver.refuse_connections()
        with pytest.raises(requests.ConnectionError):
            session.post(endpoint.url, timeout=LONG)
        receiver.accept_connections()
        assert session.post(endpoint.url, timeout=LONG).status_code == 200
    assert len(endpoint.received) == 2


def test_a_client_that_reads_nothing_is_cut_off_when_the_receiver_ends() -> None:
    with contextlib.ExitStack() as stack:
        with Receiver() as receiver:
            endpoint = receiver.endpoint("a")
            endpoint.always(Stream())
            address = ("127.0.0.1", receiver.port)
            client = stack.enter_context(socket.create_connection(address, timeout=LONG))
            client.sendall(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            client.recv(1)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(65_536):
                continue


def test_a_receiver_ends_while_it_accepts_connections() -> None:
    for _ in range(30):
        with contextlib.ExitStack() as clients, Receiver() as receiver:
            for _ in range(20):
                client = clients.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(("127.0.0.1", receiver.port))
    # Whatever was left open warns now.
    gc.collect()
