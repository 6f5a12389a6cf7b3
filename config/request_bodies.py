"""Reading a request's body before it gets a thread: bounded, whole or not at all.

A slow client holds no thread. What is short is read as it comes; of longer bodies only some are read at a
time, so that all the connections together cannot fill the memory.

granian ends a stream that broke off like one that is complete, except that it hands over one more empty piece.
It does so for trailers as well, which nobody needs: such a body is refused. Half a body must never
be published as if it were the whole.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Protocol

from config.wsgi_environ import Environ
from subscriptions.api.problems import Problem

SHORT_BYTES = 64 * 1024
# Without a byte for so long, a body is given up.
STALLED_SECONDS = 30.0
_WITHOUT_BODY = ("GET", "HEAD")


class Streamed(Protocol):
    """A request of granian's RSGI: the body at once, or piece by piece."""

    def __call__(self) -> Awaitable[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...


def _broken() -> Problem:
    detail = "The body broke off, or has trailers: send all of it, without trailers."
    return Problem(400, "broken-body", detail)


def _stalled() -> Problem:
    detail = f"The rest of the body did not come for {STALLED_SECONDS:.0f} s. Repeat the request."
    return Problem(408, "stalled-body", detail)


class Bodies:
    """Reads bodies; `long_at_a_time` of those that are longer than SHORT_BYTES."""

    def __init__(self, *, max_bytes: int, long_at_a_time: int) -> None:
        self._max_bytes = max_bytes
        self._turns = asyncio.Semaphore(long_at_a_time)

    async def read(self, environ: Environ, streamed: Streamed) -> bytes:
        """Return the body, and give one of unknown length its length, without which Django takes it for empty.

        Raises Problem for one that does not come whole.
        Of one that is too long only a byte more than `max_bytes` is read: enough for the view to see that.
        """
        length = environ.get("CONTENT_LENGTH")
        if length is not None:
            return await self._read_known(int(length), streamed)
        if environ["REQUEST_METHOD"] in _WITHOUT_BODY:
            return b""
        body = b""
        # HTTP/2 needs neither of the two.
        if "HTTP_TRANSFER_ENCODING" in environ or environ["SERVER_PROTOCOL"] == "HTTP/2":
            body = await self._read_long(streamed)
        environ["CONTENT_LENGTH"] = str(len(body))
        return body

    async def _read_known(self, length: int, streamed: Streamed) -> bytes:
        if length == 0:
            return b""
        if length > SHORT_BYTES:
            return await self._read_long(streamed)
        try:
            return await streamed()
        except RuntimeError as error:  # granian's own are derived from it.
            raise _broken() from error

    async def _read_long(self, streamed: Streamed) -> bytes:
        async with self._turns:
            return await _read_pieces(streamed, self._max_bytes)


async def _read_pieces(streamed: Streamed, max_bytes: int) -> bytes:
    body = bytearray()
    pieces = aiter(streamed)
    is_ended = False
    while (piece := await _next_piece(pieces)) is not None:
        if is_ended:
            raise _broken()
        body += piece
        if len(body) > max_bytes:
            return bytes(body[: max_bytes + 1])
        is_ended = not piece
    return bytes(body)


async def _next_piece(pieces: AsyncIterator[bytes]) -> bytes | None:
    # Not cancelled when it is late: granian would keep its lock.
    coming = asyncio.ensure_future(_piece(pieces))
    if not (await asyncio.wait([coming], timeout=STALLED_SECONDS))[0]:
        raise _stalled()
    return coming.result()


async def _piece(pieces: AsyncIterator[bytes]) -> bytes | None:
    # Not anext(pieces, None): Python 3.11 crashes over what granian gives to be awaited.
    try:
        return await anext(pieces)
    except StopAsyncIteration:
        return None
