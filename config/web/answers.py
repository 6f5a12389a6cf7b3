"""A WSGI application's answer, as the web server takes it."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

# Long answers are sent in pieces of this length, see `config.web.long_answers`.
PIECE_BYTES = 256 * 1024

Header = tuple[str, str]


class Answering(Protocol):
    """The answering side of a granian RSGI request; may be used from any thread."""

    def response_bytes(self, status: int, headers: list[Header], body: bytes) -> None: ...
    def response_file(self, status: int, headers: list[Header], file: str) -> None: ...


class Head:
    """Status and headers of an answer, collected as WSGI's `start_response`."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[Header] = []

    def __call__(self, status: str, headers: list[Header], _error: Any = None) -> None:
        self.status = int(status[:3])
        self.headers = headers

    def get(self, name: str) -> str | None:
        return next((value for header, value in self.headers if header.lower() == name), None)

    def take(self, name: str) -> str | None:
        """Remove a header, which the application set for the bridge only, and return the value."""
        for index, (header, value) in enumerate(self.headers):
            if header.lower() == name:
                del self.headers[index]
                return value
        return None


def gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts joined to pieces of at least PIECE_BYTES, but for the last."""
    pieces: list[bytes] = []
    size = 0
    for part in parts:
        pieces.append(part)
        size += len(part)
        if size >= PIECE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)
