"""Reading a request's body before it gets a thread: whole or not at all, and bounded in bytes and time.

A slow client holds no thread and nobody else's place:

- What is longer than its path allows is refused by its `Content-Length`, or as soon as that much has come.
- A body must come at a least average rate after a time of grace, so none is under way for ever.
- The bytes of long bodies are counted as they come and until their request is answered. There is so much room for all
  of a process and no more, and for each sender a part of it: who does not get any is answered 503. Strangers, that is
  who sends no valid key, session or callback token, share a room of their own, so they cannot fill that of the others.

Short bodies are not counted: as many as there may be connections take SHORT_BYTES each at most.

granian ends a stream that broke off like one that is complete, except that it hands over one more empty piece.
It does so for trailers as well, which nobody needs: such a body is refused. Half a body must never
be published as if it were the whole.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from config.web.environ import Environ
from subscriptions.api.bodies import too_large
from subscriptions.api.problems import Problem

SHORT_BYTES = 64 * 1024
_WITHOUT_BODY = ("GET", "HEAD")

Result = TypeVar("Result")


class Streamed(Protocol):
    """A request of granian's RSGI: the body at once, or piece by piece."""

    def __call__(self) -> Awaitable[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """`limit_of` gives the longest body of a path; `sender_of` who sends the request, or nothing for a stranger.

    A sender gets `share` of the room, in bytes; strangers share theirs.

    A body may be silent or slow for `grace_seconds`; after that `bytes_per_second` must have come on the average.
    """

    limit_of: Callable[[str], int]
    sender_of: Callable[[Environ], Awaitable[str]]
    room: int
    share: int
    room_of_strangers: int
    grace_seconds: float = 30.0
    bytes_per_second: int = 50_000


class Bodies:
    """Reads the bodies of one process."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._room = Room(bounds.room)
        self._rooms: dict[str, Room] = {}
        self._room_of_strangers = Room(bounds.room_of_strangers)

    @asynccontextmanager
    async def reading(self, environ: Environ, streamed: Streamed) -> AsyncIterator[bytes]:
        """Give the body, which counts until the end of the context; one of unknown length gets its length.

        Without a length Django takes a body for empty. Raises Problem for one that does not come whole.
        """
        share = Share()
        try:
            yield await self._read(environ, streamed, share)
        finally:
            share.give_back()
            if (room := self._rooms.get(share.sender)) is not None and room.free == self._bounds.share:
                del self._rooms[share.sender]

    async def _read(self, environ: Environ, streamed: Streamed, share: "Share") -> bytes:
        limit = self._bounds.limit_of(environ["PATH_INFO"])
        given = environ.get("CONTENT_LENGTH")
        length = None if given is None else int(given)
        if length is not None and length > limit:
            raise _closing(too_large(limit))
        if length == 0 or (length is None and environ["REQUEST_METHOD"] in _WITHOUT_BODY):
            return b""
        if length is None and not _may_have_body(environ):
            environ["CONTENT_LENGTH"] = "0"
            return b""
        if length is not None and length <= SHORT_BYTES:
            return await self._in_time(_whole(streamed), self._bounds.grace_seconds)
        share.sender = await self._bounds.sender_of(environ)
        share.rooms = self._rooms_of(share.sender)
        body = await self._read_pieces(streamed, limit, share)
        environ["CONTENT_LENGTH"] = str(len(body))
        return body

    def _rooms_of(self, sender: str) -> "Sequence[Room]":
        if not sender:
            return [self._room_of_strangers]
        return [self._room, self._rooms.setdefault(sender, Room(self._bounds.share))]

    async def _read_pieces(self, streamed: Streamed, limit: int, share: "Share") -> bytes:
        body = bytearray()
        pieces = aiter(streamed)
        began_at = asyncio.get_running_loop().time()
        is_ended = False
        while (
            piece := await self._in_time(_piece(pieces), self._seconds_left(began_at, len(body)))
        ) is not None:
            if is_ended:
                raise _broken()
            if len(body) + len(piece) > limit:
                raise _closing(too_large(limit))
            if not share.take(len(piece)):
                raise _no_room()
            body += piece
            is_ended = not piece
        return bytes(body)

    def _seconds_left(self, began_at: float, received: int) -> float:
        """How long the next piece may take: what came buys time, but never more than the time of grace at once."""
        bounds = self._bounds
        allowed = bounds.grace_seconds + received / bounds.bytes_per_second
        left = began_at + allowed - asyncio.get_running_loop().time()
        return max(min(left, bounds.grace_seconds), 0.0)

    async def _in_time(self, reading: Coroutine[Any, Any, Result], seconds: float) -> Result:
        # Not cancelled when it is late: granian would keep its lock. It ends when the connection is closed.
        coming = asyncio.ensure_future(reading)
        if not (await asyncio.wait([coming], timeout=seconds))[0]:
            coming.add_done_callback(_forget)
            raise _stalled()
        return coming.result()


class Room:
    """So many bytes of bodies may be in memory."""

    def __init__(self, max_bytes: int) -> None:
        self.free = max_bytes


class Share:
    """What one body takes of its rooms."""

    def __init__(self) -> None:
        self.sender = ""
        self.rooms: Sequence[Room] = ()
        self._taken = 0

    def take(self, count: int) -> bool:
        """False if there is not so much left in each."""
        if any(count > room.free for room in self.rooms):
            return False
        self._add(count)
        return True

    def give_back(self) -> None:
        self._add(-self._taken)

    def _add(self, count: int) -> None:
        self._taken += count
        for room in self.rooms:
            room.free -= count


def _may_have_body(environ: Environ) -> bool:
    encoding = environ.get("HTTP_TRANSFER_ENCODING")
    if encoding is not None and encoding.strip().lower() != "chunked":
        detail = "Of transfer encodings only chunked is understood: send the body chunked, or with its Content-Length."
        raise _closing(Problem(501, "unknown-transfer-encoding", detail))
    return encoding is not None


async def _whole(streamed: Streamed) -> bytes:
    try:
        return await streamed()
    except RuntimeError as error:  # granian's own are derived from it.
        raise _broken() from error


async def _piece(pieces: AsyncIterator[bytes]) -> bytes | None:
    # Not anext(pieces, None): Python 3.11 crashes over what granian gives to be awaited.
    try:
        return await anext(pieces)
    except StopAsyncIteration:
        return None


def _forget(late: "asyncio.Future[Any]") -> None:
    if not late.cancelled():
        late.exception()


def _closing(problem: Problem) -> Problem:
    """The rest of the body is not read, so the connection is of no more use."""
    problem.headers["Connection"] = "close"
    return problem


def _broken() -> Problem:
    detail = "The body broke off, or has trailers: send all of it, without trailers."
    return Problem(400, "broken-body", detail)


def _stalled() -> Problem:
    return _closing(Problem(408, "stalled-body", "The body came too slowly. Repeat the request."))


def _no_room() -> Problem:
    detail = "Too many long bodies are being sent just now. Repeat the request in a moment."
    return _closing(Problem(503, "no-room", detail, headers={"Retry-After": "1"}))
