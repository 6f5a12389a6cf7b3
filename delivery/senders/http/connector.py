"""The connections for attempts: to allowed addresses only, and none for long.

Attempts at built-in receivers have a connector of their own, which may connect to every address:
see `subscriptions.values.built_in_receivers`.
"""

import socket
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from delivery.senders.http.phases import CONNECTING, RESOLVED, RESOLVING, mark_phase
from delivery.senders.http.stream import AnswerStream, Clock, UntidyReceivers
from subscriptions.values.addresses import AddressRefusedError, Network, check_address, is_allowed
from subscriptions.values.resolver import Resolver, UnresolvedError

if TYPE_CHECKING:
    from aiohttp.tracing import Trace

KEEPALIVE_SECONDS = 30
# How long a resolved name is kept.
RESOLVED_SECONDS = 10
# After this long a second address is tried alongside the first, because both share the time to
# connect.
NEXT_ADDRESS_SECONDS = 0.25


class GuardedConnector(aiohttp.TCPConnector):
    """Connects to allowed addresses only.

    The guard opens each socket, whatever the resolver returned before.
    """

    def __init__(
        self, *, allowed_networks: Sequence[Network], resolver: Resolver, clock: Clock
    ) -> None:
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
        self._factory = partial(  # type: ignore[assignment]
            AnswerStream,  # type: ignore[arg-type]
            self._loop,
            clock=clock,
            untidy=UntidyReceivers(clock),
        )

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
        addresses = await self._addresses(host)
        mark_phase(RESOLVED)
        allowed = [
            address
            for address in addresses
            if is_allowed(address, allowed_networks=self._allowed_networks)
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

    async def _addresses(self, host: str) -> list[str]:
        try:
            return await self._resolver.find(host)
        except UnresolvedError:
            # c-ares compares names in /etc/hosts with the dot of an absolute name.
            if not host.endswith("."):
                raise
            return await self._resolver.find(host.removesuffix("."))

    async def close(self) -> None:
        """Do nothing: the resolver is shared."""
