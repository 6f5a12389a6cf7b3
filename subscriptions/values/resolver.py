"""Resolution of host names: names whose servers do not answer delay no other name.

c-ares queries /etc/hosts and the name servers from a single separate thread, for any number of
names at a time. libc's getaddrinfo occupies a thread for each name, for 10 s or more if the name
servers do not answer, so N such names exhaust a pool of N threads, whatever the limit per name;
under uvloop N is 2 (libuv has 4 threads, and half of them may resolve). Sources of nsswitch.conf
other than files and dns, such as mDNS or LDAP, are not queried.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeAlias

import pycares

log = logging.getLogger(__name__)

# Longer than any healthy name server needs, and within the 5 s for connecting.
RESOLVE_SECONDS = 3.0
# After a failure the name is not queried again for this long: many lanes and messages may use it.
FAILED_SECONDS = 5.0
# For lost queries and slow servers: repeated after 1 s, then after 2 and 4 s, or sooner if the
# servers usually answer fast.
_QUERY_SECONDS = 1.0
_TRIES = 4
_MOST_FAILED = 10_000
# For machines where c-ares cannot be used.
_THREADS = 64
_UNKNOWN = {pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA}

Addresses: TypeAlias = list[str]


class UnresolvedError(OSError):
    """The name has no address now; the message says why. An OSError, like a failed getaddrinfo."""


class Resolver:
    """Resolves names for all threads of a process.

    `servers` replace those of /etc/resolv.conf.
    """

    def __init__(self, *, servers: Sequence[str] = ()) -> None:
        self._servers = tuple(servers)
        self._channel: pycares.Channel | None = None
        self._left_behind: list[pycares.Channel] = []
        self.restart()

    def restart(self) -> None:
        """Discard pending queries: after a fork no thread would receive their answers."""
        if self._channel is not None:
            # Keep a reference: to collect a channel closes it, which waits for the missing thread.
            self._left_behind.append(self._channel)
        self._channel = None
        self._threads: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()
        self._under_way: dict[str, Future[Addresses]] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    def addresses_of(self, host: str, *, seconds: float = RESOLVE_SECONDS) -> Addresses:
        """Wait for a host's addresses, best first, at most RESOLVE_SECONDS.

        Raises UnresolvedError.
        """
        seconds = min(seconds, RESOLVE_SECONDS)
        try:
            return self._query(host).result(timeout=seconds)
        except TimeoutError:
            raise self._given_up(host, seconds) from None

    async def find(self, host: str) -> Addresses:
        """Await a host's addresses in a coroutine."""
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                # Cancelling does not reach the query, because others may wait for the same answer.
                return await asyncio.wrap_future(self._query(host))
        except TimeoutError:
            raise self._given_up(host, RESOLVE_SECONDS) from None

    def _query(self, host: str) -> "Future[Addresses]":
        host = host.strip("[]")
        if is_address(host):
            return _ended([host])
        with self._turn:
            until, words = self._failed.get(host, (0.0, ""))
            if time.monotonic() < until:
                return _ended(UnresolvedError(words))
            if host in self._under_way:
                return self._under_way[host]
            answer = self._under_way[host] = Future()
            answer.set_running_or_notify_cancel()
            query = self._query_libc if self._open_channel() is None else self._query_ares
        # Outside the lock: for a name in /etc/hosts the callback runs before this returns.
        query(host, answer)
        return answer

    def _open_channel(self) -> pycares.Channel | None:
        """Create the c-ares channel on first use; None if impossible."""
        if self._channel is None:
            try:
                self._channel = pycares.Channel(
                    servers=self._servers, timeout=_QUERY_SECONDS, tries=_TRIES
                )
            except pycares.AresError:
                # c-ares watches resolv.conf by inotify, whose instances are limited per user.
                log.warning(
                    "c-ares cannot be used; names whose servers do not answer may delay others"
                )
        return self._channel

    def _query_ares(self, host: str, future: "Future[Addresses]") -> None:
        assert self._channel is not None
        try:
            self._channel.getaddrinfo(
                host, None, type=socket.SOCK_STREAM, callback=partial(self._receive, host, future)
            )
        except ValueError:
            self._end(host, future, "it is not a host name")

    def _receive(
        self, host: str, future: "Future[Addresses]", result: Any, error: int | None
    ) -> None:
        """Receive an answer of c-ares, in c-ares's thread."""
        if error is None:
            addresses = list(dict.fromkeys(node.addr[0].decode() for node in result.nodes))
            self._end(host, future, addresses or "the host's name has no address")
        elif error in _UNKNOWN:
            self._end(host, future, "the host's name has no address")
        else:
            self._end(host, future, "the name servers gave no answer")

    def _query_libc(self, host: str, future: "Future[Addresses]") -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="resolver")
        self._threads.submit(self._wait_for_libc, host, future)

    def _wait_for_libc(self, host: str, future: "Future[Addresses]") -> None:
        try:
            infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            self._end(host, future, "the host name is not resolved")
        else:
            self._end(host, future, list(dict.fromkeys(str(address[0]) for *_, address in infos)))

    def _end(self, host: str, future: "Future[Addresses]", answer: Addresses | str) -> None:
        with self._turn:
            self._under_way.pop(host, None)
            self._failed.pop(host, None)
        if isinstance(answer, str):
            future.set_exception(self._failure(host, answer))
        else:
            future.set_result(answer)

    def _given_up(self, host: str, seconds: float) -> UnresolvedError:
        return self._failure(host, f"the name servers gave no answer within {seconds:g} s")

    def _failure(self, host: str, words: str) -> UnresolvedError:
        """Record a failure for FAILED_SECONDS, and return the error."""
        with self._turn:
            self._failed[host] = time.monotonic() + FAILED_SECONDS, words
            if len(self._failed) > _MOST_FAILED:
                del self._failed[next(iter(self._failed))]
        return UnresolvedError(words)


def is_address(host: str) -> bool:
    """Return whether the host is an IP address, IPv6 with or without brackets."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _ended(answer: Addresses | UnresolvedError) -> "Future[Addresses]":
    ended: Future[Addresses] = Future()
    if isinstance(answer, UnresolvedError):
        ended.set_exception(answer)
    else:
        ended.set_result(answer)
    return ended


# The resolver of this process.
resolver = Resolver()
os.register_at_fork(after_in_child=resolver.restart)
