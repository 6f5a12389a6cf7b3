"""A slow or large request costs no other client an answer."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.web.request_bodies import SHORT_BYTES
from tests.system.operation.installation import eventually
from tests.unit.config.serving import SECONDS, Served, answer, serving
from tests.unit.config.web.test_request_bodies import CHUNKED, chunks, known, refusal

LONG = SHORT_BYTES + 1
KEY = b"Authorization: Bearer key\r\n"


def with_key(raw: bytes) -> bytes:
    return raw.replace(b"Host", KEY + b"Host")


@pytest.fixture(scope="module")
def short_timeout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that times out half a second after the last byte, and has room for few bytes."""
    with serving("bridged_tight", tmp_path_factory.mktemp("impatient")) as served:
        yield served


@pytest.fixture(scope="module")
def little_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with room for few bytes that never times out."""
    with serving("patient_tight", tmp_path_factory.mktemp("cramped")) as served:
        yield served


@pytest.mark.parametrize("begun", [known(10), known(10) + b"1", known(LONG) + b"1", CHUNKED + b"1"])
def test_a_stalled_body_times_out_and_closes_its_connection(
    short_timeout: Served, begun: bytes
) -> None:
    with short_timeout.connect() as connection:
        connection.sendall(begun)
        assert refusal(connection) == (408, "stalled-body")


def test_a_trickling_body_times_out(short_timeout: Served) -> None:
    with short_timeout.connect() as connection:
        connection.sendall(known(LONG))
        while not select.select([connection], [], [], 0.05)[0]:
            connection.sendall(b".")
        assert refusal(connection) == (408, "stalled-body")


def test_stalled_bodies_take_no_place_of_others(little_memory: Served) -> None:
    with ExitStack() as stack:
        for number in range(50):
            stalled = stack.enter_context(little_memory.connect())
            stalled.sendall((known(LONG) if number % 2 else CHUNKED) + b"1")
        assert little_memory.ask(known(LONG) + b"x" * LONG)[0].status == 200
        assert little_memory.ask(CHUNKED + chunks(b"x" * LONG, size=1000))[0].status == 200


def test_strangers_share_a_room_that_is_not_that_of_others(little_memory: Served) -> None:
    def is_refused() -> bool:
        with little_memory.connect() as connection:
            connection.sendall(known(LONG) + b"x" * LONG)
            response, _ = answer(connection)
            return response.status == 503

    with ExitStack() as stack:
        for _ in range(6):
            connection: socket.socket = stack.enter_context(little_memory.connect())
            connection.sendall(known(LONG) + b"x" * (LONG - 1))
        eventually(is_refused, "there is no room for one more stranger")
        body = b"x" * (2 * LONG)
        assert little_memory.ask(with_key(known(len(body))) + body)[0].status == 200
    eventually(lambda: not is_refused(), "who has gone leaves room")


def of_origin(raw: bytes, origin: int) -> bytes:
    return raw.replace(b"Host", b"X-Forwarded-For: %d\r\nHost" % origin)


def test_one_origin_takes_only_its_share_of_the_strangers_room(little_memory: Served) -> None:
    with ExitStack() as stack:
        first: socket.socket = stack.enter_context(little_memory.connect())
        first.sendall(of_origin(known(LONG), 1) + b"x" * (LONG - 1))

        def is_full() -> bool:
            with little_memory.connect() as connection:
                connection.sendall(of_origin(known(LONG), 1) + b"x" * (LONG - 1))
                return bool(select.select([connection], [], [], 0.05)[0])

        eventually(is_full, "the origin has used its share")
        assert little_memory.ask(of_origin(known(LONG), 2) + b"x" * LONG)[0].status == 200


def test_a_silent_stranger_gives_way_to_one_that_sends(little_memory: Served) -> None:
    with ExitStack() as stack:
        silent: list[socket.socket] = []
        for origin in (1, 2):
            silent.append(stack.enter_context(little_memory.connect()))
            silent[-1].sendall(of_origin(known(LONG), origin) + b"x" * (LONG - 1))
        eventually(
            lambda: little_memory.ask(of_origin(known(LONG), 3) + b"x" * LONG)[0].status == 200,
            "a stranger who sends is served",
        )
        ended = select.select(silent, [], [], SECONDS)[0]
        assert refusal(ended[0]) == (408, "stalled-body")


def test_a_body_without_room_gets_503_with_retry_after(little_memory: Served) -> None:
    with little_memory.connect() as connection:
        connection.sendall(known(300_000) + b"x" * 200_000)
        response, _ = answer(connection)
        assert (response.status, response.getheader("Retry-After")) == (503, "1")


def test_no_sender_uses_all_the_room_for_known_clients(little_memory: Served) -> None:
    with little_memory.connect() as connection:
        connection.sendall(with_key(known(300_000)) + b"x" * 250_000)
        assert answer(connection)[0].status == 503
    with ExitStack() as stack:
        for _ in range(2):
            greedy: socket.socket = stack.enter_context(little_memory.connect())
            greedy.sendall(with_key(known(LONG)) + b"x" * (LONG - 1))
        other = known(3 * LONG).replace(b"Host", b"Authorization: Bearer other\r\nHost")
        assert little_memory.ask(other + b"x" * (3 * LONG))[0].status == 200


def test_http_2_is_not_spoken(little_memory: Served) -> None:
    """One HTTP/2 connection would be hundreds of requests at once."""
    with little_memory.connect() as connection:
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
        )
        said = connection.recv(1000)
    assert said == b"" or said.startswith(b"HTTP/1.1 ")


def test_a_silent_connection_is_closed(tmp_path: Path) -> None:
    with serving("bridged_echo", tmp_path, "--http1-header-read-timeout", "500") as served:
        with served.connect() as silent:
            assert silent.recv(1) == b""
        with served.connect() as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost:")
            while slow.recv(1000):
                pass
        with served.connect() as kept:
            kept.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            while kept.recv(65_536):
                pass
