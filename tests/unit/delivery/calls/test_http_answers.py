"""An answer is returned whole, or not at all."""

import contextlib
import gzip
import socket
from dataclasses import replace

import pytest

from config.version import version
from delivery.calls.http import MAX_ANSWER_BYTES
from delivery.outcome import EXCERPT_BYTES
from delivery.states import OutcomeClass
from tests.support.receivers import Answer, Receiver, Stream
from tests.support.receivers.raw import raw_server
from tests.unit.delivery.calls.calling import called, outcome, read_request
from tests.unit.delivery.senders.http.test_client import PARCEL
from tests.unit.delivery.test_verdict import TEAMFORGE


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 404, 429, 500, 503])
def test_an_answer_is_returned_whole_whatever_its_status(receiver: Receiver, status: int) -> None:
    hook = receiver.endpoint("hook")
    body = b"" if status == 204 else b'{"allowed": false}'
    hook.always(Answer(status, headers={"Content-Type": "application/json; x=1"}, body=body))
    ended = called(hook.url)
    assert ended.answer is not None
    assert (ended.answer.status_code, ended.answer.body) == (status, body)
    assert ended.answer.content_type == "application/json; x=1"
    assert (ended.outcome.status_code, ended.outcome.error) == (status, "")
    assert ended.outcome.excerpt == body


def test_an_answer_that_is_no_success_code_of_the_policy_is_a_failure_and_still_returned(
    receiver: Receiver,
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(202, body=b"queued"))
    ended = called(hook.url, rules=replace(TEAMFORGE, success_codes=frozenset({200})))
    assert ended.answer is not None
    assert (ended.answer.status_code, ended.answer.body) == (202, b"queued")
    assert outcome(ended) is OutcomeClass.SERVER_ERROR
    assert ended.outcome.error == "the policy counts only 200 as success"


def test_the_endpoint_gets_the_bytes_the_headers_and_the_url_as_they_are(
    receiver: Receiver,
) -> None:
    hook = receiver.endpoint("hook")
    own = {"X-Own": "yes", "Authorization": "Bearer t"}
    called(f"{hook.url}?a=b%2Fc&d=%7Ee", method="PATCH", headers=own)
    (request,) = hook.received
    assert (request.method, request.path, request.body) == (
        "PATCH",
        "/hook?a=b%2Fc&d=%7Ee",
        PARCEL.body,
    )
    assert request.id == "msg_7"
    assert request.headers["inturn-event"] == "Test.Event"
    assert request.headers["Content-Type"] == "application/json"
    assert {name: request.headers[name] for name in own} == own
    assert "Accept" not in request.headers
    assert request.headers["User-Agent"] == f"Inturn/{version()}"


def test_a_content_type_beyond_latin_1_is_sent_as_utf_8(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    assert outcome(called(hook.url, headers={"X-City": "Plzeň"})) is OutcomeClass.SUCCESS
    assert hook.received[0].headers["X-City"] == "Plzeň"


def test_a_redirect_is_neither_followed_nor_read_endlessly(receiver: Receiver) -> None:
    hook, elsewhere = receiver.endpoint("hook"), receiver.endpoint("elsewhere")
    hook.always(Answer(307, headers={"Location": elsewhere.url}))
    assert outcome(called(hook.url)) is OutcomeClass.REDIRECT
    hook.always(Stream(302))
    assert called(hook.url, timeout_seconds=20.0).answer is None
    assert elsewhere.received == []


def break_off(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")


def test_an_interrupted_answer_does_not_count() -> None:
    with raw_server(break_off) as port:
        ended = called(f"http://127.0.0.1:{port}/")
    assert (outcome(ended), ended.answer) == (OutcomeClass.UNREACHABLE, None)
    assert ended.outcome.reason == "200: its answer broke off"


@pytest.mark.parametrize(
    "answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"]
)
def test_an_answer_that_is_not_http_does_not_count(answer: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)

    with raw_server(talk) as port:
        ended = called(f"http://127.0.0.1:{port}/")
    assert ended.answer is None
    assert outcome(ended) in (OutcomeClass.UNREACHABLE, OutcomeClass.SERVER_ERROR)


def test_a_long_answer_is_not_held(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(200, body=b"x" * MAX_ANSWER_BYTES))
    whole = called(hook.url, timeout_seconds=20)
    assert whole.answer is not None
    assert len(whole.answer.body) == MAX_ANSWER_BYTES
    assert len(whole.outcome.excerpt) == EXCERPT_BYTES
    hook.always(Stream())
    ended = called(hook.url, timeout_seconds=20)
    assert (outcome(ended), ended.answer) == (OutcomeClass.SERVER_ERROR, None)
    assert ended.outcome.reason == f"200: its answer is longer than {MAX_ANSWER_BYTES} bytes"


def test_a_compressed_answer_is_decoded(receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(200, headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"plain")))
    ended = called(hook.url)
    assert ended.answer is not None
    assert ended.answer.body == b"plain"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", b"plain"), ("br", b"?"), ("gzip", gzip.compress(b"0" * (MAX_ANSWER_BYTES + 1)))],
    ids=["not gzip", "not requested", "too long when decoded"],
)
def test_an_undecodable_answer_does_not_count(
    receiver: Receiver, encoding: str, body: bytes
) -> None:
    hook = receiver.endpoint("hook")
    hook.always(Answer(200, headers={"Content-Encoding": encoding}, body=body))
    ended = called(hook.url, timeout_seconds=20)
    assert (outcome(ended), ended.answer) == (OutcomeClass.SERVER_ERROR, None)


@pytest.mark.parametrize(
    ("sent", "reported"),
    [
        (b"text/plain\r\n ; charset=utf-8", "text/plain ; charset=utf-8"),
        (b"text/\xe9", "application/octet-stream"),
        (b"a/" + b"b" * 300, "application/octet-stream"),
    ],
)
def test_a_content_type_that_no_header_may_hold_is_not_handed_on(
    sent: bytes, reported: str
) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: " + sent + b"\r\n\r\n"
        )

    with raw_server(talk) as port:
        ended = called(f"http://127.0.0.1:{port}/")
    assert ended.answer is not None
    assert ended.answer.content_type == reported


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"


@pytest.mark.parametrize("informational", [CONTINUE, HINTS], ids=["100", "103"])
def test_a_flood_of_informational_answers_ends_the_call(informational: bytes) -> None:
    def flood(connection: socket.socket) -> None:
        read_request(connection)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(informational * 1000)

    with raw_server(flood) as port:
        ended = called(f"http://127.0.0.1:{port}/", timeout_seconds=20.0)
    assert ended.outcome.reason == "unreachable: it sent more than 10 informational answers (1xx)"


@pytest.mark.parametrize("informational", [CONTINUE, HINTS], ids=["100", "103"])
def test_some_informational_answers_are_skipped(informational: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(10 * informational + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with raw_server(talk) as port:
        ended = called(f"http://127.0.0.1:{port}/")
    assert ended.answer is not None
    assert (ended.answer.status_code, ended.answer.body) == (200, b"ok")
