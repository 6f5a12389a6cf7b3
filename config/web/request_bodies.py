"""Reading a request's body before it gets a thread: complete, and bounded in bytes and time.

A slow client holds no thread, and takes no capacity from others:

- A body longer than the path allows is refused by the `Content-Length`, or as soon as more bytes
  have arrived.
- After a grace period a body must arrive at a minimum average rate, so no transfer lasts for ever.
- The bytes of a long body are counted from their arrival until the request is answered. A process
  has a fixed budget for them, and each requester a share of it; without room the answer is 503.
  Anonymous clients, without a valid credential, share a separate budget, and each origin has a
  share of it. If the anonymous budget is used up, the longest silent anonymous body is given up for
  a moving body.

Short bodies are not counted: there are at most as many as connections, each of at most SHORT_BYTES.

granian ends an interrupted stream like a complete one, but yields another empty piece. It does so
for trailers as well, which nobody needs, so such a body is refused. Half a body must never be
published as if it were complete.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from config.web.environ import Environ
from config.web.header_limits import closing
from config.web.memory_budget import MemoryBudget, Reservation
from delivery.incoming.bodies import too_large
from delivery.incoming.problems import Problem

SHORT_BYTES = 64 * 1024
_WITHOUT_BODY = ("GET", "HEAD")

Result = TypeVar("Result")


class Streamed(Protocol):
    """A request of granian's RSGI: the body as a whole, or piece by piece."""

    def __call__(self) -> Awaitable[bytes]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Requester:
    """The client of a request: a valid credential's name, or an anonymous client's origin."""

    name: str
    is_known: bool


class Requesters(Protocol):
    async def identify(self, environ: Environ) -> Requester:
        """Return the requester, however long that takes; raise Problem if it is impossible."""

    def remembered(self, environ: Environ) -> Requester:
        """Return the requester as far as it is known now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """`limit_of` returns the longest body of a path.

    A requester gets `share` bytes of the budget; anonymous clients share another, of which an
    origin gets `anonymous_share`. A body may be silent or slow for `grace_seconds`; after that
    `bytes_per_second` must have arrived on average. Of cookies only those whose names begin with
    `cookie_prefix` are passed on. A client that takes nothing of an answer for `stalled_seconds` is
    disconnected.
    """

    limit_of: Callable[[str], int]
    requesters: Requesters
    capacity: int
    share: int
    anonymous_capacity: int
    anonymous_share: int
    grace_seconds: float = 30.0
    bytes_per_second: int = 50_000
    cookie_prefix: str = ""
    stalled_seconds: float = 60.0
    anonymous_threads: int | None = None


class BodyReader:
    """Reads the bodies of a process."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._known = MemoryBudget(bounds.capacity, share=bounds.share, gives_up=False)
        self._anonymous = MemoryBudget(
            bounds.anonymous_capacity, share=bounds.anonymous_share, gives_up=True
        )

    @asynccontextmanager
    async def reading(self, environ: Environ, streamed: Streamed) -> AsyncIterator[bytes]:
        """Yield the body, which counts until the end of the context, and set its length if unknown.

        Without a length Django would treat the body as empty. Raises Problem for an incomplete
        body.
        """
        with ExitStack() as stack:
            yield await self._read(environ, streamed, stack)

    async def _read(self, environ: Environ, streamed: Streamed, stack: ExitStack) -> bytes:
        limit = self._bounds.limit_of(environ["PATH_INFO"])
        declared = environ.get("CONTENT_LENGTH")
        length = None if declared is None else int(declared)
        if length is not None and length > limit:
            raise closing(too_large(limit))
        if length == 0 or (length is None and environ["REQUEST_METHOD"] in _WITHOUT_BODY):
            return b""
        if length is None and not _may_have_body(environ):
            environ["CONTENT_LENGTH"] = "0"
            return b""
        if length is not None and length <= SHORT_BYTES:
            return await _in_time(_whole(streamed), self._bounds.grace_seconds)
        requester = await self._bounds.requesters.identify(environ)
        budget = self._known if requester.is_known else self._anonymous
        reservation = stack.enter_context(budget.reserving(requester.name))
        body = await self._read_pieces(streamed, limit, reservation)
        reservation.is_complete = True
        environ["CONTENT_LENGTH"] = str(len(body))
        return body

    async def _read_pieces(self, streamed: Streamed, limit: int, reservation: Reservation) -> bytes:
        body = bytearray()
        pieces = aiter(streamed)
        began_at = asyncio.get_running_loop().time()
        is_ended = False
        while (
            piece := await _in_time(
                _piece(pieces),
                self._seconds_left(began_at, len(body)),
                given_up=reservation.given_up,
            )
        ) is not None:
            if is_ended:
                raise _broken()
            if len(body) + len(piece) > limit:
                raise closing(too_large(limit))
            if not reservation.add(len(piece)):
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


async def _in_time(
    reading: Coroutine[Any, Any, Result],
    seconds: float,
    *,
    given_up: "asyncio.Future[None] | None" = None,
) -> Result:
    # Not cancelled on time-out, because granian would keep a lock; it ends with the connection.
    coming = asyncio.ensure_future(reading)
    ends: list[asyncio.Future[Any]] = [coming] if given_up is None else [coming, given_up]
    await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    if not coming.done() or (given_up is not None and given_up.done()):
        coming.add_done_callback(_forget)
        raise _stalled()
    return coming.result()


def _may_have_body(environ: Environ) -> bool:
    encoding = environ.get("HTTP_TRANSFER_ENCODING")
    if encoding is not None and encoding.strip().lower() != "chunked":
        detail = (
            "Of transfer encodings only chunked is understood: send the body chunked, "
            "or with its Content-Length."
        )
        raise closing(Problem(501, "unknown-transfer-encoding", detail))
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


def _broken() -> Problem:
    detail = "The body broke off, or has trailers: send all of it, without trailers."
    return Problem(400, "broken-body", detail)


def _stalled() -> Problem:
    return closing(Problem(408, "stalled-body", "The body came too slowly. Repeat the request."))


def _no_room() -> Problem:
    detail = "Too many long bodies are being sent just now. Repeat the request in a moment."
    return closing(Problem(503, "no-room", detail, headers={"Retry-After": "1"}))
