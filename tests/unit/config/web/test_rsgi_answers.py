"""The client gets a WSGI application's answer, and the application learns of its end."""

import os
import select
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import IncompleteRead
from pathlib import Path

import orjson
import pytest

from tests.system.operation.installation import eventually
from tests.unit.config.applications import BLOCK, THREADS
from tests.unit.config.serving import SECONDS, Served, answer, serving


def closed(served: Served) -> int:
    return int(served.get("/closed")[1])


def closes_one(served: Served, before: int) -> bool:
    return closed(served) == before + 1


def test_status_headers_and_chunks_are_passed_on_unchanged(answering: Served) -> None:
    before = closed(answering)
    response, body = answering.get("/")
    assert (response.status, body) == (418, b"short and stout")
    assert response.msg.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert response.headers["Content-Length"] == "15"
    assert closes_one(answering, before)


def test_a_head_has_no_body(answering: Served) -> None:
    response, body = answering.ask(b"HEAD / HTTP/1.1\r\nHost: test\r\n\r\n")
    assert (response.status, response.headers["Content-Length"], body) == (418, "15", b"")


def test_an_empty_answer_has_no_body(answering: Served) -> None:
    response, body = answering.get("/nothing")
    assert (response.status, body) == (204, b"")


def test_a_large_answer_arrives_complete(answering: Served) -> None:
    before = closed(answering)
    response, body = answering.get("/large")
    assert response.headers["Content-Length"] == str(len(body))
    assert body == BLOCK * 1000
    eventually(lambda: closes_one(answering, before), "it is closed")


def test_an_answer_ends_when_its_client_has_gone(answering: Served) -> None:
    before = closed(answering)
    with answering.connect() as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: test\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    eventually(lambda: closes_one(answering, before), "it is closed")


@pytest.mark.parametrize(
    ("path", "error"), [("/raises", "never answered"), ("/exits", "SystemExit")]
)
def test_an_application_that_fails_is_a_problem_and_in_the_log(
    answering: Served, path: str, error: str
) -> None:
    response, body = answering.get(path)
    assert response.status == 500
    assert orjson.loads(body)["type"] == "urn:inturn:problem:unexpected"
    assert error in answering.log.read_text()


def test_a_thread_survives_a_call_that_exits(answering: Served) -> None:
    for _ in range(2 * THREADS):
        assert answering.get("/exits")[0].status == 500
    assert answering.get("/")[0].status == 418


def test_an_answer_that_fails_half_way_is_closed(answering: Served) -> None:
    before = closed(answering)
    with suppress(IncompleteRead):
        assert answering.get("/breaks")[0].status == 500
    assert closes_one(answering, before)


def test_the_internal_header_is_removed(answering: Served) -> None:
    response, body = answering.get("/leaks")
    assert (response.status, body) == (200, b"answered")
    assert "Inturn-Wait" not in response.headers


def test_when_all_threads_are_busy_requests_wait(answering: Served, tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool, ExitStack() as stack:
        for path in paths:
            os.mkfifo(path)
        busy = [pool.submit(answering.get, f"/read?{path}") for path in paths]
        # Each opens when its reader, a thread of the server, opens it.
        first, *others = [stack.enter_context(path.open("w")) for path in paths]
        waiting = stack.enter_context(answering.connect())
        waiting.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
        assert not select.select([waiting], [], [], 0.1)[0]
        first.close()
        assert answer(waiting)[0].status == 418
        for other in others:
            other.close()
        assert {future.result(SECONDS)[0].status for future in busy} == {200}


def test_a_request_under_way_is_answered_when_the_server_stops(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with serving("bridged_answers", tmp_path) as served, ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(served.get, f"/read?{fifo}")
        with fifo.open("w") as released:
            served.process.terminate()
            eventually(lambda: not served.accepts(), "it takes no more connections")
            released.write("read")
        assert under_way.result(SECONDS)[1] == b"read"
        assert served.process.wait(SECONDS) == 0


def test_a_client_over_the_mailbox_limit_gets_429(tmp_path: Path) -> None:
    with serving("bridged_full", tmp_path) as full:
        response, body = full.get("/waits")
        assert (response.status, response.getheader("Retry-After")) == (429, "5")
        assert orjson.loads(body)["type"] == "urn:inturn:problem:too-many-waiting"
