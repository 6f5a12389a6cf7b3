"""Requests as the bytes from a client, sent over a socket, and the answers as they came."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from string import Template
from typing import Any
from urllib.parse import urlsplit

SECONDS = 30


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A status line, headers by their names in lower case, and the body."""

    status_line: str
    headers: dict[str, str]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.status_line.split()[1])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawConnection:
    """A connection, for any number of requests, in turn."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")

    def send(self, request: bytes) -> RawAnswer:
        """Write the bytes and read an answer, whose body has a Content-Length or is empty."""
        self._connection.sendall(request)
        status_line = self._stream.readline().decode("ascii").rstrip("\r\n")
        headers = {}
        while line := self._stream.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        assert "transfer-encoding" not in headers
        return RawAnswer(
            status_line, headers, self._stream.read(int(headers.get("content-length", 0)))
        )


@contextmanager
def raw_connection(base_url: str) -> Iterator[RawConnection]:
    """Connect to a server at http://host:port."""
    place = urlsplit(base_url)
    address = place.hostname or "", place.port or 0
    with socket.create_connection(address, timeout=SECONDS) as connection:
        yield RawConnection(connection)


def exchange(base_url: str, request: bytes) -> RawAnswer:
    """Send a request on a separate connection."""
    with raw_connection(base_url) as connection:
        return connection.send(request)


def filled(recorded: str, **values: str) -> bytes:
    """Return a recorded request with the $names replaced.

    A line end becomes CR LF in the head and stays in the body. `$length` is the body's length.
    """
    head, _, body = recorded.partition("\n\n")
    content = Template(body).substitute(values).encode()
    lines = Template(head).substitute(values, length=len(content)).replace("\n", "\r\n")
    return lines.encode("ascii") + b"\r\n\r\n" + content
