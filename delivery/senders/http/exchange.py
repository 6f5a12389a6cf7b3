"""One request and its answer, on a connection of aiohttp's connector.

aiohttp's session, request and response took more than half of a sender's processor time: they serve
cookies, redirects, repetitions, streams and proxies, none of which an attempt has. Here a request
is one write, and its answer is read as it arrives; connector and TLS are aiohttp's.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

import aiohttp
from aiohttp.connector import Connection
from django.conf import settings
from yarl import URL

from delivery.senders.http.answer import BegunAnswer, begin_answer
from delivery.senders.http.connector import GuardedConnector
from delivery.senders.http.phases import ANSWERED, SENT, mark_phase
from delivery.senders.http.stream import AnswerStream

Result = TypeVar("Result")

# For resolving the name, connecting to an address, and TLS together.
CONNECT_SECONDS = 5
# The most endpoints whose parsed URLs are kept, 1.4 to 6 kB each; parsing a URL takes 16 µs.
MOST_TARGETS = 2_000
# A longer body is not copied to be written together with its header.
JOINED_BYTES = 16 * 1024

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class NotBegunError(Exception):
    """The request was not written, and must not be written now: no attempt was made."""


class Target:
    """Method and URL of requests: their first lines, and what the connector needs of them.

    Raises InvalidURL unless the scheme is http or https, and for a URL with a user or password,
    which would not be sent.
    """

    __slots__ = ("first_lines", "place", "request")

    def __init__(self, method: str, url: str, *, loop: asyncio.AbstractEventLoop) -> None:
        parsed = URL(url, encoded=True)
        if parsed.scheme not in ("http", "https") or parsed.raw_user or parsed.raw_password:
            raise aiohttp.InvalidURL(parsed)
        self.place = f"{parsed.scheme}://{parsed.host_port_subcomponent}"
        self.request = aiohttp.ClientRequest(method, parsed, loop=loop)
        # As it is written; `yarl` leaves it out.
        empty_query = "?" if url.endswith("?") and not parsed.raw_query_string else ""
        self.first_lines = (
            f"{method} {parsed.raw_path_qs}{empty_query} HTTP/1.1",
            f"Host: {parsed.host_port_subcomponent}",
        )

    def written(self, headers: Mapping[str, str], body: bytes | None) -> Sequence[bytes]:
        """Return the bytes of a request, in parts.

        Raises ValueError for a control character in a header: a line break would make it two.
        """
        lines = [*self.first_lines, *[f"{name}: {value}" for name, value in headers.items()]]
        names = "\n".join(lines).lower()
        if "\nuser-agent:" not in names:
            lines.append(f"User-Agent: {settings.USER_AGENT}")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
            if "\ncontent-type:" not in names:
                lines.append("Content-Type: application/octet-stream")
        text = "".join(lines)
        # Nearly every header is printable, and that takes less time to find out.
        if not text.isprintable() and _CONTROL.search(text):
            raise ValueError("a header holds a control character")
        head = "\r\n".join([*lines, "", ""]).encode()
        if body is None:
            return (head,)
        return (head + body,) if len(body) <= JOINED_BYTES else (head, body)


class HttpExchange:
    """Makes requests on the connections of a connector."""

    def __init__(self, connector: GuardedConnector) -> None:
        self.connector = connector
        self._loop = asyncio.get_running_loop()
        self._targets = lru_cache(MOST_TARGETS)(partial(Target, loop=self._loop))

    def target(self, method: str, url: str) -> Target:
        return self._targets(method, url)

    async def request(
        self,
        target: Target,
        written: Sequence[bytes],
        read: Callable[[BegunAnswer], Awaitable[Result]],
        *,
        seconds: float,
        may_begin: Callable[[], bool],
    ) -> Result:
        """Write one request, and return what `read` makes of its answer.

        All of it ends within so many seconds. Raises TimeoutError, UnreadableAnswerError, OSError,
        and exceptions of aiohttp. The request is written at once or not at all: the process may be
        frozen between any two lines, and wake up much later. Raises NotBegunError if `may_begin` is
        false just before its first byte is written.
        """
        ends_at = self._loop.time() + seconds
        connection, stream = await self._connect(target, min(CONNECT_SECONDS, seconds))
        may_be_used_again = False
        try:
            if not may_begin():
                may_be_used_again = stream.end(is_tidy=True, has_strays=False)
                raise NotBegunError
            timer = self._loop.call_at(ends_at, stream.expire)
            try:
                _write(stream, written)
                answer = await begin_answer(stream)
                mark_phase(ANSWERED)
                result = await read(answer)
            finally:
                timer.cancel()
            may_be_used_again = stream.end(is_tidy=answer.is_tidy, has_strays=answer.has_strays)
            return result
        finally:
            # Keeps the connection, unless more of the answer may follow.
            connection.release() if may_be_used_again else _end(connection)

    async def certificate(self, target: Target, *, seconds: float) -> Mapping[str, Any]:
        """Connect, and return the server's verified certificate, empty without TLS."""
        connection, _ = await self._connect(target, min(CONNECT_SECONDS, seconds))
        try:
            transport = connection.transport
            return (transport and transport.get_extra_info("peercert")) or {}
        finally:
            _end(connection)

    async def _connect(self, target: Target, seconds: float) -> tuple[Connection, AnswerStream]:
        try:
            while True:
                connection = await self.connector.connect(target.request, [], _timeout(seconds))
                stream = cast("AnswerStream", connection.protocol)
                if stream.begin(target.place):
                    return connection, stream
                connection.close()
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error
        except aiohttp.ClientError:
            raise
        except OSError as error:
            raise aiohttp.ClientOSError(*error.args) from error


@lru_cache(100)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(connect=seconds)


def _end(connection: Connection) -> None:
    """End the connection at once.

    To close it would first write the rest of the request and, with TLS, read for up to half a
    minute what the receiver sends.
    """
    if connection.protocol is not None:
        connection.protocol.abort()
    connection.close()


def _write(stream: AnswerStream, written: Sequence[bytes]) -> None:
    transport = stream.transport
    if transport is None or transport.is_closing():
        raise aiohttp.ClientConnectionResetError
    transport.writelines(written)
    mark_phase(SENT)
