"""The connections that attempts are made on: to allowed addresses only."""

import socket
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from subscriptions.addresses import Network, check_address
from subscriptions.resolver import Resolver

KEEPALIVE_SECONDS = 30
# How long a resolved name is believed.
RESOLVED_SECONDS = 10
# A second address is tried beside the first after this long, for both have only the time to connect.
NEXT_ADDRESS_SECONDS = 0.25


class GuardedConnector(aiohttp.TCPConnector):
    """Connects to allowed addresses; each socket is made by the guard, whatever the resolver said before."""

    def __init__(self, *, allowed_networks: Sequence[Network], resolver: Resolver) -> None:
        self._allowed_networks = allowed_networks
        super().__init__(
            limit=0,
            ttl_dns_cache=RESOLVED_SECONDS,
            keepalive_timeout=KEEPALIVE_SECONDS,
            socket_factory=self._open_socket,
            happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
            resolver=_Names(resolver),
        )

    def _open_socket(self, address: "aiohttp.AddrInfoType") -> socket.socket:
        family, kind, protocol, _, target = address
        check_address(str(target[0]), allowed_networks=self._allowed_networks)
        return socket.socket(family=family, type=kind, proto=protocol)


class _Names(AbstractResolver):
    """Resolves by the resolver that the rest of Inturn uses."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await self._resolver.find(host)
        ]

    async def close(self) -> None:
        """Nothing: the resolver is used by others, too."""
