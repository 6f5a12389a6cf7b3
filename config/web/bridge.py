"""The bridge from granian's RSGI to Django's WSGI: one thread per call, none per waiting client.

A request's body is read before the request gets a thread, which calls the application and sends the
answer. So a client sending slowly holds no thread, and when all threads are busy, requests queue
for them.

For a long poll the application answers with the header WAIT_HEADER if this subscriber's mailbox is
empty. Then the client becomes an entry in `delivery.mailbox.waiters` until a notification, and the
application is called again with the same request. This repeats until it has an answer, or until
`wait` seconds after the beginning of the request. The header is never sent to a client.

For a disconnected client, the application is not called, because messages fetched for it would be
invisible until their visibility ends. A disconnect during the milliseconds of a call cannot be
noticed; messages fetched by such a call do come back in that way.
"""

import asyncio
import faulthandler
import logging
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BytesIO
from typing import Any, Protocol
from urllib.parse import parse_qs

from django.http import HttpResponse

from config.web.answers import Answering, Head, Header
from config.web.connection_closer import ConnectionCloser
from config.web.environ import Environ, RsgiScope, environ_of, for_waiting
from config.web.header_limits import check_head
from config.web.long_answers import LongAnswer, LongAnswers, is_bounded, is_without_body
from config.web.postponed_answers import Postponed, PostponedAnswers
from config.web.request_bodies import BodyReader, Bounds, Requester, Streamed
from config.web.threads import ANONYMOUS, Threads
from delivery.incoming.problems import Problem, unexpected_error
from delivery.mailbox.notifications import MailboxNotifications
from delivery.mailbox.waiters import WAIT_HEADER, Waiter, Waiters
from delivery.receivers.late_answers import AFTER_HEADER

log = logging.getLogger(__name__)

LONGEST_WAIT_SECONDS = 20.0
# A process stopping later than this prints where its threads are, before granian kills it.
LATE_STOP_SECONDS = 6.0

Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
# Returns the answer to a request for this path with this problem.
Refusal = Callable[[str, Problem], HttpResponse]


class RsgiRequest(Answering, Streamed, Protocol):
    """A request of granian's RSGI."""

    async def client_disconnect(self) -> None: ...


class ShortWay(Protocol):
    """Answers some requests without the application."""

    async def answer(self, environ: Environ, body: bytes) -> tuple[int, list[Header], bytes] | None:
        """Return status, headers and body, or None to leave it to the application.

        May raise Problem.
        """

    def close(self) -> None: ...


@dataclass(slots=True)
class BridgedRequest:
    """A request with the body, for all calls of the application."""

    request: RsgiRequest
    environ: Environ
    body: bytes
    began_at: float
    # Done when the client has disconnected; only long polls check it.
    disconnected: asyncio.Future[None] | None = None
    # The application's latest answer, until it is sent.
    head: Head = field(default_factory=Head)
    # An answer to be sent later, or piece by piece.
    postponed: Postponed | None = None
    long: LongAnswer | None = None

    @property
    def wait_seconds(self) -> float:
        """Return the requested wait; the application has refused invalid and excessive values."""
        try:
            seconds = float(parse_qs(self.environ["QUERY_STRING"]).get("wait", ["0"])[-1])
        except ValueError:
            return 0.0
        return seconds if 0 < seconds <= LONGEST_WAIT_SECONDS else 0.0


def problem_document(_path: str, problem: Problem) -> HttpResponse:
    return problem.response()


class Bridge:
    """An RSGI application for granian around a WSGI application."""

    def __init__(
        self,
        application: Application,
        *,
        threads: int,
        bounds: Bounds,
        most_at_a_mailbox: int,
        short_way: ShortWay | None = None,
        refusal_of: Refusal = problem_document,
    ) -> None:
        self._application = application
        self._threads = Threads(self._answer, count=threads, anonymous=bounds.anonymous_threads)
        self._bodies = BodyReader(bounds)
        self._most_at_a_mailbox = most_at_a_mailbox
        self._closer = ConnectionCloser()
        self._long_answers = LongAnswers(stalled_seconds=bounds.stalled_seconds)
        self._requesters = bounds.requesters
        self._cookie_prefix = bounds.cookie_prefix
        self._short_way = short_way
        self._refusal_of = refusal_of
        self._waiters = Waiters()
        self._notifications = MailboxNotifications(self._waiters)
        self._postponed = PostponedAnswers()

    @property
    def waiting(self) -> int:
        """Return the number of waiting clients."""
        return self._waiters.count

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Prepare the event loop; granian calls this before it serves."""
        loop.add_signal_handler(signal.SIGTERM, self._stop)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close everything; granian calls this after it has served."""
        loop.run_until_complete(self._notifications.close())
        self._threads.close()
        self._long_answers.close()
        if self._short_way is not None:
            self._short_way.close()

    async def __rsgi__(self, scope: RsgiScope, request: RsgiRequest) -> None:
        began_at = asyncio.get_running_loop().time()
        environ = environ_of(scope)
        try:
            check_head(environ, cookie_prefix=self._cookie_prefix)
            async with self._bodies.reading(environ, request) as body:
                if await self._is_answered(request, environ, body):
                    return
                call = BridgedRequest(request, environ, body, began_at)
                requester = await self._requester(environ)
                mailbox = await self._call(call, requester)
            # Free the body, which nothing needs any more.
            call.body = b""
            if mailbox is not None:
                call.environ = for_waiting(call.environ)
                await self._wait(call, mailbox, requester)
            await self._send_rest(call, requester, client=scope.client)
        except Problem as problem:
            self._refuse(request, environ, problem)
            if problem.status_code == HTTPStatus.REQUEST_TIMEOUT:
                self._closer.close_soon(scope.client)

    async def _requester(self, environ: Environ) -> Requester:
        """Return the requester; first look up a client who would wait among anonymous clients."""
        requester = self._requesters.remembered(environ)
        if requester.is_known or self._threads.has_room_for_anonymous:
            return requester
        return await self._requesters.identify(environ)

    async def _call(self, call: BridgedRequest, requester: Requester) -> int | None:
        queue = requester.name if requester.is_known else ANONYMOUS
        return await self._threads.call(call, queue=queue)

    async def _send_rest(self, call: BridgedRequest, requester: Requester, *, client: str) -> None:
        """Send an answer left to the event loop by the thread of the call."""
        if call.postponed is not None:
            await self._postponed.send(call.request, call.postponed, client=client)
        if call.long is None:
            return
        try:
            await self._long_answers.send(
                call.request, call.long, requester=requester, client=client
            )
        except Exception as error:
            if isinstance(error, Problem) and not call.long.is_begun:
                raise
            log.exception("the application failed", extra={"path": call.environ["PATH_INFO"]})
            if not call.long.is_begun:
                raise unexpected_error() from error

    async def _is_answered(self, request: RsgiRequest, environ: Environ, body: bytes) -> bool:
        """Answer requests that need no application; return whether it was answered."""
        answer = None if self._short_way is None else await self._short_way.answer(environ, body)
        if answer is not None:
            request.response_bytes(*answer)
        return answer is not None

    def _stop(self) -> None:
        """Answer the waiting clients, then stop granian, which stops for SIGINT as well."""
        faulthandler.dump_traceback_later(LATE_STOP_SECONDS)
        self._waiters.stop()
        self._postponed.stop()
        self._long_answers.stop()
        signal.raise_signal(signal.SIGINT)

    def _answer(self, call: BridgedRequest) -> int | None:
        """Call the application, in a thread, and send the answer.

        If the client is to wait, return the mailbox instead.
        """
        if call.disconnected is not None and call.disconnected.done():
            return None
        call.head = head = Head()
        try:
            return self._answer_with(head, call)
        except BaseException:  # The thread must survive any exception.
            log.exception("the application failed", extra={"path": call.environ["PATH_INFO"]})
            self._refuse(call.request, call.environ, unexpected_error())
        return None

    def _answer_with(self, head: Head, call: BridgedRequest) -> int | None:
        answered = self._application(call.environ | {"wsgi.input": BytesIO(call.body)}, head)
        # Django closes old database connections here.
        close = getattr(answered, "close", _nothing)
        try:
            mailbox = head.take(WAIT_HEADER)
            if mailbox is not None and head.status == HTTPStatus.NO_CONTENT and mailbox.isdecimal():
                return int(mailbox)
            if (after := head.take(AFTER_HEADER)) is not None:
                call.postponed = Postponed(
                    after=after, status=head.status, headers=head.headers, body=b"".join(answered)
                )
                return None
            if is_bounded(head, answered):
                call.request.response_bytes(head.status, head.headers, b"".join(answered))
            elif is_without_body(call.environ["REQUEST_METHOD"], head):
                call.request.response_bytes(head.status, head.headers, b"")
            else:
                call.long = LongAnswer(head=head, parts=answered, close=close)
        finally:
            if call.long is None:
                close()
        return None

    def _refuse(self, request: Answering, environ: Environ, problem: Problem) -> None:
        answer = self._refusal_of(environ["PATH_INFO"], problem)
        request.response_bytes(answer.status_code, list(answer.items()), answer.content)

    async def _wait(self, call: BridgedRequest, mailbox: int, requester: Requester) -> None:
        if self._waiters.count_at(mailbox) >= self._most_at_a_mailbox:
            raise _too_many_waiting()
        self._notifications.start()
        call.disconnected = asyncio.ensure_future(call.request.client_disconnect())
        waiter = self._waiters.enter(mailbox, since=call.began_at)
        may_be_more = True
        try:
            while await self._is_turn(call, waiter):
                if await self._call(call, requester) is None:
                    may_be_more = call.disconnected.done() or call.head.status == HTTPStatus.OK
                    return
                self._waiters.return_turn(waiter)
            call.request.response_bytes(call.head.status, call.head.headers, b"")
        finally:
            self._waiters.leave(waiter, may_be_more=may_be_more)
            call.disconnected.cancel()

    async def _is_turn(self, call: BridgedRequest, waiter: Waiter) -> bool:
        """Wait for this client's turn to fetch; False if the wait has ended."""
        assert call.disconnected is not None
        remaining = call.began_at + call.wait_seconds - asyncio.get_running_loop().time()
        ends: list[asyncio.Future[Any]] = [waiter.turn, call.disconnected]
        await asyncio.wait(ends, timeout=max(remaining, 0.0), return_when=asyncio.FIRST_COMPLETED)
        return not call.disconnected.done() and waiter.turn.done() and waiter.turn.result()


def _nothing() -> None:
    return


def _too_many_waiting() -> Problem:
    detail = (
        "Too many clients wait at this mailbox already. Fetch without wait, or with fewer clients."
    )
    return Problem(429, "too-many-waiting", detail, headers={"Retry-After": "5"})
