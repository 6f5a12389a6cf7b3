"""Closing the connection of a client whose body does not arrive.

granian keeps a connection while anybody waits for the client's bytes, even after an answer with
`Connection: close`, so a silent client would hold it for ever. Therefore the socket is searched
among the process's sockets and shut down. A search closes all connections that timed out within a
second. It needs /proc; without it such connections stay.
"""

import asyncio
import os
import socket
from collections.abc import Collection
from pathlib import Path

OPEN_FILES = Path("/proc/self/fd")
# Time to send the answer first.
PAUSE_SECONDS = 1.0


class ConnectionCloser:
    """For the event loop's thread only; `client` is an address with port in granian's format."""

    def __init__(self) -> None:
        self._clients: set[str] = set()

    def close_soon(self, client: str) -> None:
        if not self._clients:
            asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._begin)
        self._clients.add(client)

    def _begin(self) -> None:
        clients, self._clients = self._clients, set()
        asyncio.get_running_loop().run_in_executor(None, shut_down, clients)


def shut_down(clients: Collection[str]) -> None:
    """Shut down this process's connections with these clients."""
    # Names suffice: there are thousands, and a Path for each costs more.
    for name in os.listdir(OPEN_FILES) if OPEN_FILES.is_dir() else []:  # noqa: PTH208
        try:
            connection = socket.socket(fileno=int(name))
        except OSError:
            # Not a socket, or closed meanwhile.
            continue
        try:
            host, port = connection.getpeername()[:2]
            if f"{host}:{port}" in clients or f"[{host}]:{port}" in clients:
                connection.shutdown(socket.SHUT_RDWR)
        except (OSError, ValueError):
            continue
        finally:
            # granian still owns the descriptor.
            connection.detach()
