"""A keep-alive connection to the web server: as little HTTP as a client of the benchmark needs."""

import asyncio
from typing import cast

_LENGTH = b"\r\ncontent-length:"


class AnswerError(Exception):
    """The answer's status was not 2xx."""


class KeepAliveConnection(asyncio.Protocol):
    """Sends one request at a time and reads the answer, which has a content-length."""

    def __init__(self, headers: str) -> None:
        self._headers = headers.encode()
        self._buffer = b""
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(AnswerError("the connection was closed"))

    async def ask(
        self, method: bytes, path: bytes, body: bytes = b"", *, headers: bytes = b""
    ) -> bytes:
        """Return the body of the answer; raise AnswerError unless the status is 2xx."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(
            b"%s %s HTTP/1.1\r\n%s%scontent-length: %d\r\n\r\n%s"
            % (method, path, self._headers, headers, len(body), body)
        )
        return await self._answer

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[: end + 2].lower()
        at = head.find(_LENGTH) + len(_LENGTH)
        length = int(head[at : head.index(b"\r", at)]) if at >= len(_LENGTH) else 0
        if len(self._buffer) >= end + 4 + length:
            body, self._buffer = self._buffer[end + 4 :], b""
            self._tell(head, body)

    def _tell(self, head: bytes, body: bytes) -> None:
        assert self._answer is not None
        if head.startswith(b"http/1.1 2"):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(AnswerError(f"{head.decode()}{body.decode()}"))


async def open_connection(port: int, key: str) -> KeepAliveConnection:
    """Connect to a web server on this machine, with a key and for JSON."""
    headers = (
        f"host: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n"
        "content-type: application/json\r\n"
    )
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: KeepAliveConnection(headers), "127.0.0.1", port
    )
    return connection
