"""Sending a WSGI application's answer by RSGI, from the thread that called the application."""

from collections.abc import Awaitable, Iterable
from typing import Any, Protocol

# Longer answers are streamed in pieces of this size.
PIECE_BYTES = 256 * 1024

Header = tuple[str, str]


class Transport(Protocol):
    def send_bytes(self, piece: bytes) -> Awaitable[None]: ...


class Answering(Protocol):
    """The answering side of a granian RSGI request; may be used from any thread."""

    def response_bytes(self, status: int, headers: list[Header], body: bytes) -> None: ...
    def response_stream(self, status: int, headers: list[Header]) -> Transport: ...


class Head:
    """Status and headers of an answer, collected as WSGI's `start_response`."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[Header] = []

    def __call__(self, status: str, headers: list[Header], _error: Any = None) -> None:
        self.status = int(status[:3])
        self.headers = headers

    def take(self, name: str) -> str | None:
        """Remove a header, which the application set for the bridge only, and return its value."""
        for index, (header, value) in enumerate(self.headers):
            if header.lower() == name:
                del self.headers[index]
                return value
        return None


def send_answer(answering: Answering, head: Head, body: Iterable[bytes]) -> None:
    """Send a short body at once with its length, a longer one in pieces while the client reads."""
    pieces: list[bytes] = []
    size = 0
    transport: Transport | None = None
    for part in body:
        pieces.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            transport = transport or answering.response_stream(head.status, head.headers)
            if not _is_sent(transport.send_bytes(b"".join(pieces))):
                return
            pieces, size = [], 0
    if transport is None:
        answering.response_bytes(head.status, head.headers, b"".join(pieces))
    elif pieces:
        _is_sent(transport.send_bytes(b"".join(pieces)))


def _is_sent(sent: Awaitable[None]) -> bool:
    """Return whether granian accepted the piece; that is known at once, without an event loop."""
    try:
        next(iter(sent.__await__()))
    except StopIteration:
        return True
    except RuntimeError:  # The base class of granian's errors.
        return False
    return True
