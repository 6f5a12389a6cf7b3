"""Late answers hold no thread, and end with their client or the server."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.web.postponed_answers import MOST_POSTPONED
from tests.system.operation.installation import eventually
from tests.unit.config.applications import THREADS
from tests.unit.config.serving import SECONDS, Served, answer, serving


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving("bridged_late", tmp_path_factory.mktemp("late")) as served:
        yield served


def ask(served: Served, stack: ExitStack, path: str) -> None:
    """Send a request on a connection that stays open until the stack is left."""
    connection = stack.enter_context(served.connect())
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())


def begun(served: Served) -> int:
    return int(served.get("/begun")[1])


def test_a_late_answer_comes_when_it_is_due(late: Served) -> None:
    start = time.monotonic()
    response, body = late.get("/?0.3")
    assert time.monotonic() - start >= 0.3
    assert (response.status, body) == (202, b"at last")
    assert "inturn-answer-after" not in response.headers


def test_hanging_answers_hold_no_thread(late: Served) -> None:
    before = begun(late)
    with ExitStack() as stack:
        for _ in range(3 * THREADS):
            ask(late, stack, "/?60")
        eventually(lambda: begun(late) == before + 3 * THREADS, "all of them wait")


def test_a_closed_connection_has_no_answer(late: Served) -> None:
    with late.connect() as connection:
        connection.sendall(b"GET /?close HTTP/1.1\r\nHost: test\r\n\r\n")
        assert connection.recv(100) == b""
    assert late.get("/?0")[0].status == 202


def test_a_place_is_free_again_when_its_client_has_gone(late: Served) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_POSTPONED):
            ask(late, stack, "/?60")
        eventually(lambda: late.get("/?0.01")[0].status == 503, "there is no room")
    eventually(lambda: late.get("/?0.01")[0].status == 202, "there is room again")


def test_waiting_answers_are_sent_when_the_server_stops(tmp_path: Path) -> None:
    with serving("bridged_late", tmp_path) as served, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_body_of_a_late_answer, served)
        eventually(lambda: begun(served) == 1, "it waits")
        assert served.stop() == 0
        assert waiting.result(SECONDS) == b"at last"


def _body_of_a_late_answer(served: Served) -> bytes:
    with served.connect() as connection:
        connection.sendall(b"GET /?60 HTTP/1.1\r\nHost: test\r\n\r\n")
        return answer(connection)[1]
