"""Reading a request's body before it gets a thread: complete, and bounded in bytes and time.

A slow client holds no thread, and takes no capacity from others:

- A body longer than its path allows is refused by its `Content-Length`, or as soon as more than
  that has arrived.
- After a grace period a body must arrive at a minimum average rate, so no transfer lasts for ever.
- The bytes of a long body are counted from their arrival until the request is answered. A process
  has a fixed capacity for them, and each sender a share of it; without capacity the answer is 503.
  Strangers, senders without a valid key, session or callback token, share a separate capacity, so
  they cannot use up that of the others.

Short bodies are not counted: there are at most as many as connections, each of at most SHORT_BYTES.

granian ends an interrupted stream like a complete one, except that it yields one more empty piece.
It does so for trailers as well, which nobody needs, so such a body is refused. Half a body must
never be published as if it were complete.
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
    """A request of granian's RSGI: the body as a whole, or piece by piece."""

    def __call__(self) -> Awaitable[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """`limit_of` returns the longest body of a path, `client_of` the sender, empty for a stranger.

    A sender gets `share` bytes of the capacity; strangers share their own. A body may be silent or
    slow for `grace_seconds`; after that `bytes_per_second` must have arrived on average.
    """

    limit_of: Callable[[str], int]
    client_of: Callable[[Environ], Awaitable[str]]
    capacity: int
    share: int
    capacity_of_strangers: int
    grace_seconds: float = 30.0
    bytes_per_second: int = 50_000


class Bodies:
    """Reads the bodies of one process."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._capacity = Capacity(bounds.capacity)
        self._capacities: dict[str, Capacity] = {}
        self._capacity_of_strangers = Capacity(bounds.capacity_of_strangers)

    @asynccontextmanager
    async def reading(self, environ: Environ, streamed: Streamed) -> AsyncIterator[bytes]:
        """Yield the body, which counts until the end of the context, and set its length if unknown.

        Without a length Django would treat the body as empty. Raises Problem for an incomplete
        body.
        """
        share = Share()
        try:
            yield await self._read(environ, streamed, share)
        finally:
            share.give_back()
            if (
                capacity := self._capacities.get(share.client)
            ) is not None and capacity.free == self._bounds.share:
                del self._capacities[share.client]

    async def _read(self, environ: Environ, streamed: Streamed, share: "Share") -> bytes:
        limit = self._bounds.limit_of(environ["PATH_INFO"])
        declared = environ.get("CONTENT_LENGTH")
        length = None if declared is None else int(declared)
        if length is not None and length > limit:
            raise _closing(too_large(limit))
        if length == 0 or (length is None and environ["REQUEST_METHOD"] in _WITHOUT_BODY):
            return b""
        if length is None and not _may_have_body(environ):
            environ["CONTENT_LENGTH"] = "0"
            return b""
        if length is not None and length <= SHORT_BYTES:
            return await self._in_time(_whole(streamed), self._bounds.grace_seconds)
        share.client = await self._bounds.client_of(environ)
        share.capacities = self._capacities_of(share.client)
        body = await self._read_pieces(streamed, limit, share)
        environ["CONTENT_LENGTH"] = str(len(body))
        return body

    def _capacities_of(self, client: str) -> "Sequence[Capacity]":
        if not client:
            return [self._capacity_of_strangers]
        return [self._capacity, self._capacities.setdefault(client, Capacity(self._bounds.share))]

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
        """Return the time limit of the next piece.

        Received bytes extend it, but never beyond the grace period at once.
        """
        bounds = self._bounds
        allowed = bounds.grace_seconds + received / bounds.bytes_per_second
        left = began_at + allowed - asyncio.get_running_loop().time()
        return max(min(left, bounds.grace_seconds), 0.0)

    async def _in_time(self, reading: Coroutine[Any, Any, Result], seconds: float) -> Result:
        # Not cancelled on time-out, because granian would keep its lock; it ends with the
        # connection.
        coming = asyncio.ensure_future(reading)
        if not (await asyncio.wait([coming], timeout=seconds))[0]:
            coming.add_done_callback(_forget)
            raise _stalled()
        return coming.result()


class Capacity:
    """Capacity for the bytes of bodies in memory."""

    def __init__(self, max_bytes: int) -> None:
        self.free = max_bytes


class Share:
    """The part of the capacities that one body takes."""

    def __init__(self) -> None:
        self.client = ""
        self.capacities: Sequence[Capacity] = ()
        self._taken = 0

    def take(self, count: int) -> bool:
        """Take from each capacity; False if any of them lacks it."""
        if any(count > capacity.free for capacity in self.capacities):
            return False
        self._add(count)
        return True

    def give_back(self) -> None:
        self._add(-self._taken)

    def _add(self, count: int) -> None:
        self._taken += count
        for capacity in self.capacities:
            capacity.free -= count


def _may_have_body(environ: Environ) -> bool:
    encoding = environ.get("HTTP_TRANSFER_ENCODING")
    if encoding is not None and encoding.strip().lower() != "chunked":
        detail = (
            "Of transfer encodings only chunked is understood: send the body chunked, "
            "or with its Content-Length."
        )
        raise _closing(Problem(501, "unknown-transfer-encoding", detail))
    return encoding is not None


async def _whole(streamed: Streamed) -> bytes:
    try:
        return await streamed()
    except RuntimeError as error:  # The base class of granian's errors.
        raise _broken() from error


async def _piece(pieces: AsyncIterator[bytes]) -> bytes | None:
    # Not anext(pieces, None): with granian's awaitables Python 3.11 crashes there.
    try:
        return await anext(pieces)
    except StopAsyncIteration:
        return None


def _forget(late: "asyncio.Future[Any]") -> None:
    if not late.cancelled():
        late.exception()


def _closing(problem: Problem) -> Problem:
    """Close the connection after the answer, because the rest of the body is not read."""
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
