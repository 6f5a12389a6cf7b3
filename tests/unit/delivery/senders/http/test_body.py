"""No receiver chooses how long the reading of its answer occupies a sender."""

import time
from collections.abc import Callable

import pytest

from delivery.senders.http.body import Body
from delivery.senders.http.framing import MAX_HEADER_BYTES, parse_head, parse_later_head

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LATE = b"{}\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
# A process that shares its processor, and lines that differ a little.
GENEROUSLY = 20


def filled(before: bytes, line: bytes, after: bytes) -> bytes:
    times = (MAX_HEADER_BYTES - len(before) - len(after)) // len(line)
    return before + line * times + after


PLAIN = filled(LATE + OK, b"A: HTTP/2 200\r\n", b"\r\n")


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor time of this work, at its best."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize(
    "received",
    [
        filled(b"x\r\n", b"a:HTTP/1.1 200\n", b"x\n\n"),
        filled(b"x\r\n", b"a:HTTP/1.1 200\n", b"\n"),
        filled(b"x\r\n", b"HTTP/1.1 200\n", b"\r\n"),
        filled(b"x", b"HTTP/1.1 200 ", b"\r\n\r\n"),
        filled(b"x:", b"HTTP/1.1 200 ", b"\r\n\r\n"),
        filled(b"HTTP/", b"1", b" 200\r\n\r\n"),
        filled(b"HTTP/1.1", b" ", b"x\r\n\r\n"),
        filled(OK, b"a b\r\n", b"\r\n"),
        filled(OK, b"a b:\r\n", b"\r\n"),
        filled(OK, b"\r\n ", b"\r\n\r\n"),
        filled(OK + b"Content-Length: ", b"1,", b"\r\n\r\n"),
        filled(OK, b"Connection:\n", b"\n"),
        filled(OK + b"Content-Length", b" ", b"\n\n"),
        filled(b"", b"\r", b"\n\n"),
    ],
    ids=lambda received: received[:40].decode().encode("unicode_escape").decode(),
)
def test_the_header_of_any_answer_takes_about_as_long_as_a_plain_one(received: bytes) -> None:
    def parse(header: bytes) -> None:
        if parse_head(header) is None:
            parse_later_head(header)

    plain = seconds_of(lambda: parse(PLAIN))
    assert seconds_of(lambda: parse(received)) < GENEROUSLY * plain


@pytest.mark.parametrize(
    ("begin", "goes_on"),
    [
        (b"0\r\n", b"a\n"),
        (b"0\r\n", b"a: b\r\n"),
        (b"", b"1\r\na\r\n"),
        (b"", b"1;" + b"x" * 1000 + b"\r\na\r\n"),
    ],
    ids=["trailer", "trailer of headers", "small chunks", "chunk extensions"],
)
def test_a_body_takes_no_more_lines_than_suit_the_wanted_bytes(
    begin: bytes, goes_on: bytes
) -> None:
    head = parse_head(CHUNKED)
    assert head is not None
    body, most_bytes = Body(head), 1000
    body.take(bytearray(begin), most_bytes)
    received = bytearray(goes_on * 20_000)
    given = len(received)
    body.take(received, most_bytes)
    assert not body.wants_more(most_bytes)
    assert not body.is_over
    assert given - len(received) < 2 * most_bytes + 10 * 1024
