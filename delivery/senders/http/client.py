"""Sending one parcel, on aiohttp's connections.

A receiver's fault is an Outcome, never an exception. Redirects are not followed.
`delivery.senders.http.connector` decides which addresses may be connected to;
`subscriptions.values.built_in_receivers` says why Inturn's built-in receivers have a connector of
their own, which may connect to every address.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from delivery.outcome import EXCERPT_BYTES, Fault, Outcome, answer_class, class_of
from delivery.senders.http.answer import BegunAnswer
from delivery.senders.http.connector import GuardedConnector
from delivery.senders.http.exchange import CONNECT_SECONDS, HttpExchange, NotBegunError, Result
from delivery.senders.http.faults import evidence, fault_of
from delivery.senders.http.phases import begin_phases
from delivery.senders.http.request import Request, make_request, traced_attempt
from delivery.senders.http.stream import Clock
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import OutcomeClass
from delivery.tracing.traces import traces
from subscriptions.values.addresses import EVERY_NETWORK, Network
from subscriptions.values.resolver import Resolver
from subscriptions.values.resolver import resolver as this_resolver

# Bodies of answers are read up to here, and for so long after their header.
READ_BYTES = 64 * 1024
READ_SECONDS = 1.0
STOPPED = "Inturn was stopped before the answer"

# The headers and the body of a request, None for none.
Sent: TypeAlias = tuple[Mapping[str, str], bytes | None]


class Read(Protocol):
    """Reads an answer as far as its caller needs it, and judges it."""

    def __call__(
        self, answer: BegunAnswer, *, success_codes: frozenset[int] | None
    ) -> Awaitable["Reception"]: ...


def _always() -> bool:
    return True


class HttpClient:
    """An HTTP client for all lanes of one sender. Use it as an async context manager."""

    def __init__(
        self,
        *,
        allowed_networks: Sequence[Network],
        built_in_receivers: Container[str] = (),
        resolver: Resolver = this_resolver,
        clock: Clock = time.monotonic,
    ) -> None:
        self._allowed_networks = tuple(allowed_networks)
        self._built_in_receivers = built_in_receivers
        self._resolver = resolver
        self._clock = clock
        # Set when Inturn stops: the outcome of an attempt cancelled from then on is that there was
        # no answer.
        self.is_closing = False
        self._traces = traces()

    async def __aenter__(self) -> "HttpClient":
        self._exchange = self._opened(self._allowed_networks)
        self._own_exchange = self._opened(EVERY_NETWORK)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exchange.connector.close()
        await self._own_exchange.connector.close()

    def _opened(self, allowed_networks: Sequence[Network]) -> HttpExchange:
        connector = GuardedConnector(
            allowed_networks=allowed_networks, resolver=self._resolver, clock=self._clock
        )
        return HttpExchange(connector)

    async def send(
        self,
        parcel: Parcel,
        endpoint: Endpoint,
        *,
        request: Request | None = None,
        may_begin: Callable[[], bool] = _always,
    ) -> Outcome:
        """Make one attempt and return its outcome.

        Ends within the time-out whatever the receiver does. Uses a request made ahead if it suits.
        Raises NotBegunError if `may_begin` is false when the request is to be written.
        """
        now = datetime.now(UTC)
        phases = None if self._traces is None else begin_phases(due_at=parcel.due_at)
        try:
            if request is None or not request.suits(parcel, endpoint, now=now):
                request = make_request(parcel, endpoint, now=now)
        except Exception as error:  # noqa: BLE001 - a fault of ours is an outcome, too
            outcome = _failure(error, endpoint.timeout_seconds).outcome_at(now, duration_ms=0)
        else:
            outcome = await self.attempt(request, _read, may_begin=may_begin)
        if self._traces is not None and phases is not None:
            self._traces.record_attempt(traced_attempt(parcel), outcome, phases=phases.seconds())
        return outcome

    async def attempt(
        self, request: Request, read: Read, *, may_begin: Callable[[], bool] = _always
    ) -> Outcome:
        """Make this request once, and return its outcome by what `read` made of the answer.

        Ends within the time-out whatever the receiver does.
        """
        started_at = datetime.now(UTC)
        start = time.perf_counter()
        endpoint = request.endpoint
        try:
            reception = await self._request(
                endpoint.method,
                request.url,
                sent=(request.headers, request.parcel.body),
                read=partial(read, success_codes=endpoint.rules.success_codes),
                seconds=endpoint.timeout_seconds,
                may_begin=may_begin,
            )
        except NotBegunError:
            raise
        except asyncio.CancelledError:
            if not self._goes_on():
                raise
            reception = Reception(OutcomeClass.TIMEOUT, error=STOPPED)
        # Every way to fail is an outcome; none may stop the lane.
        except Exception as error:  # noqa: BLE001
            reception = _failure(error, endpoint.timeout_seconds)
        reception.error = request.recorded_error(reception.error)
        duration_ms = round((time.perf_counter() - start) * 1000)
        return reception.outcome_at(started_at, duration_ms=duration_ms)

    async def probe(self, url: str, *, seconds: float) -> str:
        """GET a probe URL; return an empty text if it answers 2xx, otherwise the fault."""
        return await self._fault_of("GET", url, sent=({}, None), seconds=seconds)

    async def post_json(self, url: str, body: bytes, *, seconds: float) -> str:
        """Post to a URL; return an empty text if it answers 2xx, otherwise the fault."""
        sent = {"Content-Type": "application/json"}, body
        return await self._fault_of("POST", url, sent=sent, seconds=seconds)

    async def reach(self, url: str, *, seconds: float) -> tuple[str, Mapping[str, Any]]:
        """Connect as an attempt does, and send nothing.

        Returns the fault, empty if there is a connection, and the server's certificate as
        `ssl.SSLSocket.getpeercert` does, empty without TLS.
        """
        try:
            exchange = self._exchange_for(url)
            return "", await exchange.certificate(exchange.target("GET", url), seconds=seconds)
        except Exception as error:  # noqa: BLE001 - as for an attempt
            return _fault(error, seconds)[1], {}

    async def _fault_of(self, method: str, url: str, *, sent: Sent, seconds: float) -> str:
        try:
            status = await self._request(method, url, sent=sent, read=_status, seconds=seconds)
            return "" if class_of(status) is OutcomeClass.SUCCESS else f"it answered {status}"
        except asyncio.CancelledError:
            if not self._goes_on():
                raise
            return STOPPED
        except Exception as error:  # noqa: BLE001 - as for an attempt
            return _fault(error, seconds)[1]

    def _request(
        self,
        method: str,
        url: str,
        *,
        sent: Sent,
        read: Callable[[BegunAnswer], Awaitable[Result]],
        seconds: float,
        may_begin: Callable[[], bool] = _always,
    ) -> Awaitable[Result]:
        exchange = self._exchange_for(url)
        target = exchange.target(method, url)
        written = target.written(*sent)
        return exchange.request(target, written, read, seconds=seconds, may_begin=may_begin)

    def _goes_on(self) -> bool:
        """Return whether this task, just cancelled, records that; it does while Inturn stops."""
        task = asyncio.current_task()
        if not self.is_closing or task is None:
            return False
        task.uncancel()
        return True

    def _exchange_for(self, url: str) -> HttpExchange:
        return self._own_exchange if url in self._built_in_receivers else self._exchange


class Reception:
    """The receiver's part of an outcome."""

    __slots__ = ("error", "excerpt", "outcome", "retry_after_seconds", "status_code")

    def __init__(
        self, outcome: OutcomeClass, *, status_code: int | None = None, error: str = ""
    ) -> None:
        self.outcome = outcome
        self.status_code = status_code
        self.error = error
        self.excerpt = b""
        self.retry_after_seconds: float | None = None

    def outcome_at(self, started_at: datetime, *, duration_ms: int) -> Outcome:
        return Outcome(
            outcome=self.outcome,
            started_at=started_at,
            duration_ms=duration_ms,
            status_code=self.status_code,
            error=self.error,
            excerpt=self.excerpt,
            retry_after_seconds=self.retry_after_seconds,
        )


async def _read(answer: BegunAnswer, *, success_codes: frozenset[int] | None) -> Reception:
    """Judge by the status; keep an excerpt of the body, and only of a failure."""
    reception = judged(answer, await read_beginning(answer), success_codes=success_codes)
    if reception.outcome is OutcomeClass.SUCCESS:
        reception.excerpt = b""
    else:
        wanted = answer.head.value("Retry-After")
        reception.retry_after_seconds = retry_after(wanted, now=datetime.now(UTC))
    return reception


def judged(answer: BegunAnswer, body: bytes, *, success_codes: frozenset[int] | None) -> Reception:
    """Judge an answer by its status alone; what is malformed in it is noted."""
    outcome, error = answer_class(answer.status, success_codes=success_codes)
    note = answer.note
    error = f"{error}; {note}" if error and note else error or note
    reception = Reception(outcome, status_code=answer.status, error=error)
    reception.excerpt = body[:EXCERPT_BYTES]
    return reception


async def _status(answer: BegunAnswer) -> int:
    await read_beginning(answer)
    return answer.status


async def read_beginning(answer: BegunAnswer) -> bytes:
    """Read a short body to its end, which keeps the connection; the status decides without it."""
    seconds = READ_SECONDS if answer.has_usable_body else 0.0
    body, _ = await answer.read(READ_BYTES, seconds=seconds)
    return body


def retry_after(value: str, *, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110, 10.2.3); None if invalid."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        # A number of any length is allowed; the policy bounds it.
        return float(value[:12])
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)


def _failure(error: Exception, seconds: float) -> Reception:
    outcome, words = _fault(error, seconds)
    answer = Reception(outcome, error=words)
    answer.excerpt = evidence(error)
    return answer


def _fault(error: Exception, seconds: float) -> Fault:
    return fault_of(error, connect_seconds=min(CONNECT_SECONDS, seconds), seconds=seconds)
