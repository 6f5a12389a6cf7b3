"""The bridge from granian's RSGI to Django's WSGI application: a thread for each call, and none for those who wait.

A request's body is read before it gets one of the threads; there the application is called and its answer sent. So a
client that is slow to send holds no thread, and when all are busy requests queue for them.

A long poll is an answer with the header WAIT_HEADER, by which the application says that there is nothing at
the mailbox of this subscriber. Then the client is a place in `delivery.mailbox.waiters` until there is news; the application is
called again with the same request; and so on until it has an answer, or `wait` seconds after
the request began. The header reaches no client.

A client that has gone is not called for: what is fetched for it would be out until its visibility ends. In the
milliseconds of a call nobody can tell; what was fetched for one who leaves then does come back in that way.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BytesIO
from typing import Any, Protocol
from urllib.parse import parse_qs

import orjson

from config.web.answers import Answering, Head, Header, send
from config.web.environ import Environ, RsgiScope, environ_of
from config.web.hang_up import HangUp
from config.web.request_bodies import Bodies, Bounds, Streamed
from config.web.threads import Threads
from delivery.mailbox.notifications import MailboxNews
from delivery.mailbox.waiters import WAIT_HEADER, Waiter, Waiters
from subscriptions.api.problems import CONTENT_TYPE, Problem, unexpected

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS = 20.0

Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class RsgiRequest(Answering, Streamed, Protocol):
    """A request of granian's RSGI."""

    async def client_disconnect(self) -> None: ...


class ShortWay(Protocol):
    """Answers some requests without the application."""

    async def answer(self, environ: Environ, body: bytes) -> tuple[int, list[Header], bytes] | None:
        """Return status, headers and body, or None for what the application is to answer; may raise Problem."""

    def close(self) -> None: ...


@dataclass(slots=True)
class BridgedRequest:
    """A request with its body, as often as it is put to the application."""

    request: RsgiRequest
    environ: Environ
    body: bytes
    began_at: float
    # Done when the client has gone; only long polls look.
    gone: asyncio.Future[None] | None = None
    # What the application said last, while it is not sent.
    head: Head = field(default_factory=Head)

    @property
    def wait_seconds(self) -> float:
        """How long the client wants to wait; the application has refused what is no number or too much."""
        try:
            given = float(parse_qs(self.environ["QUERY_STRING"]).get("wait", ["0"])[-1])
        except ValueError:
            return 0.0
        return given if 0 < given <= LONGEST_WAIT_SECONDS else 0.0


class Bridge:
    """An RSGI application for granian, of a WSGI application."""

    def __init__(
        self,
        application: Application,
        *,
        threads: int,
        bounds: Bounds,
        most_at_a_mailbox: int,
        short_way: ShortWay | None = None,
    ) -> None:
        self._application = application
        self._threads = Threads(self._answer, count=threads)
        self._bodies = Bodies(bounds)
        self._most_at_a_mailbox = most_at_a_mailbox
        self._hang_up = HangUp()
        self._short_way = short_way
        self._waiters = Waiters()
        self._news = MailboxNews(self._waiters)

    @property
    def waiting(self) -> int:
        """How many clients wait."""
        return self._waiters.count

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Before granian serves."""
        loop.add_signal_handler(signal.SIGTERM, self._stop)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """After granian served."""
        loop.run_until_complete(self._news.close())
        self._threads.close()
        if self._short_way is not None:
            self._short_way.close()

    async def __rsgi__(self, scope: RsgiScope, request: RsgiRequest) -> None:
        began_at = asyncio.get_running_loop().time()
        environ = environ_of(scope)
        try:
            async with self._bodies.reading(environ, request) as body:
                if await self._is_answered(request, environ, body):
                    return
                call = BridgedRequest(request, environ, body, began_at)
                mailbox = await self._threads.call(call)
            if mailbox is not None:
                # The bytes of a body that nobody needs do not wait with its client.
                call.body, call.environ["CONTENT_LENGTH"] = b"", "0"
                await self._wait(call, mailbox)
        except Problem as problem:
            _answer_problem(request, problem)
            if problem.status_code == HTTPStatus.REQUEST_TIMEOUT:
                self._hang_up.soon(scope.client)

    async def _is_answered(self, request: RsgiRequest, environ: Environ, body: bytes) -> bool:
        """Answer without the application what needs nothing of it."""
        answer = None if self._short_way is None else await self._short_way.answer(environ, body)
        if answer is not None:
            request.response_bytes(*answer)
        return answer is not None

    def _stop(self) -> None:
        """Answer those who wait; then do as granian does, which stops for SIGINT as well."""
        self._waiters.stop()
        signal.raise_signal(signal.SIGINT)

    def _answer(self, call: BridgedRequest) -> int | None:
        """Call the application, in a thread, and send its answer; if that is to wait, return at which mailbox instead."""
        if call.gone is not None and call.gone.done():
            return None
        call.head = head = Head()
        try:
            return self._answer_with(head, call)
        except BaseException:  # The thread must live, whatever was raised.
            log.exception("the application failed", extra={"path": call.environ["PATH_INFO"]})
            _answer_problem(call.request, unexpected())
        return None

    def _answer_with(self, head: Head, call: BridgedRequest) -> int | None:
        answered = self._application(call.environ | {"wsgi.input": BytesIO(call.body)}, head)
        try:
            mailbox = head.take(WAIT_HEADER)
            if mailbox is not None and head.status == HTTPStatus.NO_CONTENT and mailbox.isdecimal():
                return int(mailbox)
            send(call.request, head, answered)
        finally:
            # Django gives up its old database connections here.
            if close := getattr(answered, "close", None):
                close()
        return None

    async def _wait(self, call: BridgedRequest, mailbox: int) -> None:
        if self._waiters.count_at(mailbox) >= self._most_at_a_mailbox:
            raise _too_many_waiting()
        self._news.start()
        call.gone = asyncio.ensure_future(call.request.client_disconnect())
        waiter = self._waiters.enter(mailbox, since=call.began_at)
        may_be_more = True
        try:
            while await self._is_turn(call, waiter):
                if await self._threads.call(call) is None:
                    may_be_more = call.gone.done() or call.head.status == HTTPStatus.OK
                    return
                self._waiters.again(waiter)
            call.request.response_bytes(call.head.status, call.head.headers, b"")
        finally:
            self._waiters.leave(waiter, may_be_more=may_be_more)
            call.gone.cancel()

    async def _is_turn(self, call: BridgedRequest, waiter: Waiter) -> bool:
        """Wait for this client's turn to look; False when it waits no longer."""
        assert call.gone is not None
        remaining = call.began_at + call.wait_seconds - asyncio.get_running_loop().time()
        ends: list[asyncio.Future[Any]] = [waiter.turn, call.gone]
        await asyncio.wait(ends, timeout=max(remaining, 0.0), return_when=asyncio.FIRST_COMPLETED)
        return not call.gone.done() and waiter.turn.done() and waiter.turn.result()


def _answer_problem(request: Answering, problem: Problem) -> None:
    headers = [("Content-Type", CONTENT_TYPE), *problem.headers.items()]
    request.response_bytes(problem.status_code, headers, orjson.dumps(problem.document))


def _too_many_waiting() -> Problem:
    detail = "Too many clients wait at this mailbox already. Fetch without wait, or with fewer clients."
    return Problem(429, "too-many-waiting", detail, headers={"Retry-After": "5"})
