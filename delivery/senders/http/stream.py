"""A connection to a receiver: one request at a time, and the bytes that answer it.

Bytes that come late must not be taken for the next answer. If they arrive

- while the connection is idle, it is ended;
- just before the next request, and the event loop has not read them yet, another connection is
  used;
- while the next request is being written, they count only if no other answer follows, until two
  seconds after it is written: a receiver may answer before it has read a request;
- after the next request was written, they are dropped up to the first tidy answer. If none comes,
  the request has no answer, whatever the receiver has done with it.

Only if they begin like an answer themselves, and arrive after the next request was written, they
count: HTTP/1.1 cannot tell the difference. So a receiver that sent stray bytes gets a new
connection for each request from then on, for ten minutes: the same cannot happen twice.

An answer 408 that ends the connection of an earlier answer is no answer to the request, but the end
of an idle connection: proxies send it when their time is over, and it may cross the request. The
message was not taken, and may be sent again (RFC 9110, 15.5.9). On a new connection it counts.
"""

import asyncio
import random
import select
from collections.abc import Callable
from typing import cast

from delivery.senders.http.phases import CONNECTED, SECURED, mark_phase

Clock = Callable[[], float]

# A connection is not used for longer, so that a receiver that moves is followed although its old
# address still answers. A name is resolved again after `connector.RESOLVED_SECONDS` more: all of it
# takes less than two minutes. At random, because a thousand lanes may have begun together.
YOUNGEST_SECONDS, OLDEST_SECONDS = 60.0, 100.0
# How long a receiver that sent bytes after its answer gets a new connection for each request.
UNTIDY_SECONDS = 600.0
_MOST_UNTIDY = 10_000
# Not more is read from the network before the answer's reader has taken some.
_MOST_UNREAD = 256 * 1024
# Sent to end an idle connection.
_IDLE_ENDS = (b"HTTP/1.1 408", b"HTTP/1.0 408")


class ConnectionEndedError(ConnectionError):
    """The receiver closed the connection, as it may after any answer."""


class UntidyReceivers:
    """The places, as `http://host:port`, that sent bytes after their answers recently."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def add(self, place: str) -> None:
        self._until.pop(place, None)
        self._until[place] = self._clock() + UNTIDY_SECONDS
        if len(self._until) > _MOST_UNTIDY:
            del self._until[next(iter(self._until))]

    def __contains__(self, place: str) -> bool:
        return bool(self._until) and self._until.get(place, 0.0) > self._clock()


class AnswerStream(asyncio.Protocol):
    """The bytes that a receiver sends, for exchanges in turn.

    An aiohttp connector keeps the stream, in place of aiohttp's own protocol. `received` are the
    bytes of the present answer that nobody has taken yet.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, clock: Clock, untidy: UntidyReceivers
    ) -> None:
        # Made as soon as the socket is connected.
        mark_phase(CONNECTED)
        self.transport: asyncio.Transport | None = None
        self.received = bytearray()
        self.failure: BaseException | None = None
        # True if an earlier answer came on this connection.
        self.is_used = False
        # True if the first of the received bytes came before the request was written whole.
        self.is_early = False
        self._loop = loop
        self._clock = clock
        self._untidy = untidy
        self._place = ""
        # A new connection is made for an exchange, and a busy server may answer before the request.
        self._is_awaited = True
        self._is_paused = False
        self._is_lost = False
        self._waiter: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; with TLS, after the handshake."""
        if transport.get_extra_info("ssl_object") is not None:
            mark_phase(SECURED)
        self.transport = cast("asyncio.Transport", transport)
        self._ends_at = self._clock() + random.uniform(YOUNGEST_SECONDS, OLDEST_SECONDS)
        self._unread = select.poll()
        self._unread.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if not self._is_awaited:
            if not data.startswith(_IDLE_ENDS):
                self.mark_untidy()
            self.abort()
            return
        if self.is_used and not self.received:
            self.is_early = self.is_writing
        self.received += data
        if len(self.received) > _MOST_UNREAD and self.transport is not None:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake()

    def connection_lost(self, error: BaseException | None) -> None:
        self._is_lost = True
        self.transport = None
        self._fail(error or ConnectionEndedError())
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def begin(self, place: str) -> bool:
        """Begin an exchange with that place; False if the connection must not be used for it."""
        if self.is_used and (self.is_old or place in self._untidy or self._unread.poll(0)):
            return False
        self._place = place
        self._is_awaited = True
        return True

    def end(self, *, is_tidy: bool, has_strays: bool) -> bool:
        """End an exchange; True if the connection may be used for another.

        The answer is tidy if all of it was read and well-formed; its strays are bytes that belong
        to no answer.
        """
        self._is_awaited = False
        self.is_used = True
        if has_strays:
            self.mark_untidy()
        is_at_rest = is_tidy and self.failure is None and not self.is_writing
        return is_at_rest and not self.is_old and self._place not in self._untidy

    def mark_untidy(self) -> None:
        """Note that its receiver sent bytes that belong to no answer."""
        self._untidy.add(self._place)

    async def more(self) -> bool:
        """Wait for more bytes; False if there will be none, for the reason in `failure`."""
        if self.failure is not None:
            return False
        if self._is_paused and self.transport is not None:
            self._is_paused = False
            self.transport.resume_reading()
        self._waiter = self._loop.create_future()
        await self._waiter
        return True

    def expire(self) -> None:
        """End the wait for the answer, or for the rest of it, with TimeoutError."""
        self._fail(TimeoutError())

    @property
    def is_writing(self) -> bool:
        """True if a part of the request is still to be written."""
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    @property
    def is_old(self) -> bool:
        return self._clock() > self._ends_at

    def is_connected(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    @property
    def should_close(self) -> bool:
        """True if the connector must not keep it."""
        return not self.is_connected()

    @property
    def closed(self) -> "asyncio.Future[None] | None":
        """A future that is done when the connection is closed; None if it is."""
        if self._closed is None and not self._is_lost:
            self._closed = self._loop.create_future()
        return self._closed

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
