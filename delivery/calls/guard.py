"""The connections for `delivery.calls.http`: to allowed addresses, cut when the time is over.

An address is checked when a connection is made, and the connection goes to that very address:
whatever a name resolved to when it was saved, or resolves to a moment later, does not matter. TLS
is still verified against the name, by the authorities that this machine trusts, as for all other
sending. A call to a built-in receiver of Inturn may connect to every address, because its URL was
checked: see `subscriptions.values.built_in_receivers`.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Collection
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from types import TracebackType
from typing import Any, Self

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError
from urllib3.util.connection import create_connection

from delivery.outcome import MAX_INFORMATIONAL
from subscriptions.values.addresses import AddressRefusedError, Network, check_address
from subscriptions.values.resolver import resolver

CONNECT_SECONDS = 5.0
# The thread that cuts a call may be late. A socket's own time-out ends the call as well, but loses
# the beginning of the answer: so it comes later.
LATE_CUT_SECONDS = 2.0
# A server that closes idle connections may do so when one is used again: the call would be lost.
KEEPALIVE_SECONDS = 30.0


class GuardedCall:
    """One call, as seen by its connection. Use it as a context manager, in the calling thread.

    When its time is over the connection is cut, whatever it waits for: a socket's own time-out
    restarts with each byte, so an endpoint that drips its answer would never reach it.
    `connect_error` is why there was no connection to `place`.
    """

    def __init__(self, *, seconds: float, allowed_networks: Collection[Network]) -> None:
        self.seconds = seconds
        self.allowed_networks = allowed_networks
        self.connect_seconds = min(CONNECT_SECONDS, seconds)
        self.connect_error: OSError | None = None
        self.place = ""
        self.is_over = False
        self._turn = threading.Lock()
        self._watched: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        _under_way.call = self
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        _under_way.call = None
        with self._turn:
            self._forget()

    @property
    def timeout(self) -> tuple[float, float]:
        """Return the time-outs of the socket, for connecting and for reading."""
        return self.connect_seconds, self.seconds + LATE_CUT_SECONDS

    def watch(self, connected: socket.socket) -> None:
        """Cut this socket when the time is over."""
        with self._turn:
            self._forget()
            # A second descriptor, because TLS takes the socket itself apart.
            self._watched = socket.fromfd(connected.fileno(), connected.family, connected.type)
            if self.is_over:
                self._cut()

    def _end(self) -> None:
        with self._turn:
            self.is_over = True
            self._cut()

    def _cut(self) -> None:
        if self._watched is not None:
            # The other side may have closed it already.
            with contextlib.suppress(OSError):
                self._watched.shutdown(socket.SHUT_RDWR)

    def _forget(self) -> None:
        if self._watched is not None:
            self._watched.close()
            self._watched = None


_under_way = threading.local()


def _call() -> GuardedCall:
    call: GuardedCall | None = _under_way.call
    assert call is not None
    return call


class InformationalFloodError(HTTPException):
    """The endpoint sends too many informational answers; the message says so."""


class _GuardedResponse(HTTPResponse):
    """Skips a limited number of informational answers (1xx).

    Reading them without a limit keeps all threads of the process waiting.
    """

    _informational = 0

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        if not 100 <= status < 200 or status == HTTPStatus.SWITCHING_PROTOCOLS:
            return version, status, reason
        self._informational += 1
        if self._informational > MAX_INFORMATIONAL:
            raise InformationalFloodError(
                f"it sent more than {MAX_INFORMATIONAL} informational answers (1xx)"
            )
        # The only status after which http.client reads on, with all its headers.
        return version, HTTPStatus.CONTINUE, reason


class GuardedConnection(HTTPConnection):
    """A connection to an allowed address, not used again after it was idle for long."""

    response_class = _GuardedResponse
    _used_at = 0.0

    def _new_conn(self) -> socket.socket:
        call = _call()
        try:
            connected = _connect(self, call)
        except OSError as error:
            call.connect_error, call.place = error, f"{self.host}:{self.port}"
            raise NewConnectionError(self, str(error)) from error
        call.watch(connected)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        self._used_at = time.monotonic()
        if self.sock is not None:
            _call().watch(self.sock)
        super().request(*args, **options)

    @property
    def is_connected(self) -> bool:
        return time.monotonic() - self._used_at < KEEPALIVE_SECONDS and super().is_connected


class GuardedTLSConnection(GuardedConnection, HTTPSConnection):
    """The same with TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = GuardedConnection


class _TLSPool(HTTPSConnectionPool):
    ConnectionCls = GuardedTLSConnection


def pool_manager(*, hosts: int, connections_a_host: int) -> PoolManager:
    """Keep so many connections to so many hosts, those used last."""
    pools = PoolManager(
        num_pools=hosts,
        maxsize=connections_a_host,
        block=False,
        ssl_context=ssl.create_default_context(),
    )
    pools.pool_classes_by_scheme = {"http": _Pool, "https": _TLSPool}
    return pools


def _connect(connection: HTTPConnection, call: GuardedCall) -> socket.socket:
    """Try the host's addresses in turn; after several failures a refusal is the one raised."""
    until = time.monotonic() + call.connect_seconds
    failure: OSError | None = None
    for address in resolver.addresses_of(connection.host, seconds=call.connect_seconds):
        try:
            check_address(address, allowed_networks=call.allowed_networks)
            return create_connection(
                (address, connection.port or 0),
                max(until - time.monotonic(), 0.01),
                socket_options=connection.socket_options,
            )
        except OSError as error:
            failure = failure if isinstance(failure, AddressRefusedError) else error
    assert failure is not None
    raise failure
