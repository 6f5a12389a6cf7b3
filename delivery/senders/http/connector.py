"""The connections for attempts: to allowed addresses only, with bounded input before an answer.

Attempts at built-in receivers have a connector of their own, which may connect to every address:
see `subscriptions.values.own_receivers`.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, AbstractStreamWriter, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from delivery.outcome import MAX_INFORMATIONAL
from delivery.senders.http.phases import CONNECTED, SECURED, mark_phase
from subscriptions.values.addresses import AddressRefusedError, Network, check_address, is_allowed
from subscriptions.values.resolver import Resolver

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

KEEPALIVE_SECONDS = 30
# How long a resolved name is kept.
RESOLVED_SECONDS = 10
# After this long a second address is tried alongside the first, because both share the time to
# connect.
NEXT_ADDRESS_SECONDS = 0.25
# The limit for informational answers and the answer's header together.
MAX_HEADER_BYTES = 64 * 1024
# The most that is parsed at once: data beyond the limits keeps the event loop busy for no more than
# this.
_PARSED_BYTES = 4 * 1024


# Whether the request of this task may still be written; checked when it gets a connection and when
# its first byte is written.
may_begin: ContextVar[Callable[[], bool]] = ContextVar("may_begin")


class NotBegunError(Exception):
    """The request was not written, and must not be written now: no attempt was made."""


def _must_not_begin() -> bool:
    may_begin_now = may_begin.get(None)
    return may_begin_now is not None and not may_begin_now()


class GuardedRequest(aiohttp.ClientRequest):
    """A request written at once or not at all.

    The process may be frozen between any two lines, and wake up much later.
    """

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: "Connection", content_length: int | None = None
    ) -> None:
        # Other tasks have run since the connection was made. The header waits for the body, to be
        # written with it.
        if _must_not_begin() and conn.protocol is not None:
            conn.protocol.set_exception(NotBegunError())
            conn.close()
            return
        await super().write_bytes(writer, conn, content_length)


class FloodError(aiohttp.ClientConnectionError):
    """The receiver sends too much data that is not an answer; the message says which."""


class GuardedConnector(aiohttp.TCPConnector):
    """Connects to allowed addresses only.

    The guard opens each socket, whatever the resolver returned before.
    """

    def __init__(self, *, allowed_networks: Sequence[Network], resolver: Resolver) -> None:
        self._allowed_networks = allowed_networks
        super().__init__(
            limit=0,
            ttl_dns_cache=RESOLVED_SECONDS,
            keepalive_timeout=KEEPALIVE_SECONDS,
            socket_factory=self._open_socket,
            happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
            resolver=_Names(resolver, allowed_networks=allowed_networks),
        )
        # aiohttp has no public way to choose the protocol class of a connection.
        self._factory = partial(_BoundedHandler, self._loop)  # type: ignore[assignment]

    async def connect(
        self, req: aiohttp.ClientRequest, traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> "Connection":
        """Return a connection.

        Raise NotBegunError if the request must no longer be written to it.
        """
        connection = await super().connect(req, traces, timeout)
        if _must_not_begin():
            connection.release()
            raise NotBegunError
        return connection

    def _open_socket(self, address: "aiohttp.AddrInfoType") -> socket.socket:
        family, kind, protocol, _, target = address
        check_address(str(target[0]), allowed_networks=self._allowed_networks)
        return socket.socket(family=family, type=kind, proto=protocol)


class _Names(AbstractResolver):
    """Resolves with the resolver of all Inturn, and keeps only the allowed addresses."""

    def __init__(self, resolver: Resolver, *, allowed_networks: Sequence[Network]) -> None:
        self._resolver = resolver
        self._allowed_networks = allowed_networks

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._resolver.find(host)
        allowed = [
            one for one in addresses if is_allowed(one, allowed_networks=self._allowed_networks)
        ]
        if not allowed:
            raise AddressRefusedError(addresses[0])
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in allowed
        ]

    async def close(self) -> None:
        """Do nothing: the resolver is shared."""


class _BoundedHandler(ResponseHandler):
    """Ends a connection that sends more than the one requested answer.

    aiohttp skips any number of informational answers, and parses and queues all that arrives,
    without back-pressure, on the event loop shared by all lanes of a sender; it does so even on an
    idle kept connection.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Made as soon as the socket is connected.
        mark_phase(CONNECTED)
        super().__init__(loop)
        self._informational = 0
        self._header_bytes = 0
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; with TLS, after the handshake."""
        if transport.get_extra_info("ssl_object") is not None:
            mark_phase(SECURED)
        super().connection_made(transport)

    def set_response_params(self, **params: Any) -> None:
        """Begin to wait for an answer; called once for each request."""
        self._informational = self._header_bytes = 0
        self._is_answered = False
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if len(data) <= _PARSED_BYTES:
            self._take(data)
            return
        for start in range(0, len(data), _PARSED_BYTES):
            if self._should_end():
                return
            self._take(data[start : start + _PARSED_BYTES])

    def _take(self, data: bytes) -> None:
        if not self._is_answered:
            self._header_bytes += len(data)
        super().data_received(data)
        if not self._is_answered and self._header_bytes > MAX_HEADER_BYTES:
            self._end(f"it sent more than {MAX_HEADER_BYTES // 1024} KiB before an answer")

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take one answer, whose header is complete."""
        if self._is_answered:
            self._end("it sent more than one answer")
            return
        if 100 <= data[0].code < 200 and data[0].code != 101:
            self._informational += 1
            if self._informational > MAX_INFORMATIONAL:
                self._end(f"it sent more than {MAX_INFORMATIONAL} informational answers (1xx)")
                return
        else:
            self._is_answered = True
        super().feed_data(data, size)

    def _end(self, words: str) -> None:
        if self._should_end():
            return
        if self.transport is not None:
            self.transport.abort()
        self.set_exception(FloodError(words))

    def _should_end(self) -> bool:
        return self.transport is None or self.transport.is_closing() or self._exception is not None
