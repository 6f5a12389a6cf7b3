"""The connections for attempts: to allowed addresses only, with bounded input before an answer.

Attempts at built-in receivers have a connector of their own, which may connect to every address:
see `subscriptions.values.built_in_receivers`.
"""

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from delivery.outcome import MAX_INFORMATIONAL
from delivery.senders.http.phases import (
    CONNECTED,
    CONNECTING,
    RESOLVED,
    RESOLVING,
    SECURED,
    mark_phase,
)
from subscriptions.values.addresses import AddressRefusedError, Network, check_address, is_allowed
from subscriptions.values.resolver import Resolver

if TYPE_CHECKING:
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
_MORE_THAN_ONE = "it sent more than one answer"


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
        self._factory = partial(AnswerHandler, self._loop)  # type: ignore[assignment]

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        mark_phase(CONNECTING)
        return await super()._create_connection(req, traces, timeout)

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
        mark_phase(RESOLVING)
        addresses = await self._resolver.find(host)
        mark_phase(RESOLVED)
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


class AnswerHandler(ResponseHandler):
    """One connection: ends it when the time for an answer is over, and if it is flooded.

    That is a connection that sends more than the one requested answer.

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

    @property
    def is_writing(self) -> bool:
        """True if a part of the request is still to be written."""
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    def expire(self) -> None:
        """End the wait for the answer, or for the rest of it, with TimeoutError."""
        content = self._payload
        error = TimeoutError()
        self.set_exception(error)
        if content is not None:
            content.set_exception(error)

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
        elif data and self._payload is not None and self._payload.is_eof():
            # Otherwise the parser would keep the beginning of another answer, and the parser of the
            # next answer would miss it.
            self._end(_MORE_THAN_ONE)
            return
        super().data_received(data)
        if not self._is_answered and self._header_bytes > MAX_HEADER_BYTES:
            self._end(f"it sent more than {MAX_HEADER_BYTES // 1024} KiB before an answer")

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take one answer, whose header is complete."""
        if self._is_answered:
            self._end(_MORE_THAN_ONE)
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
