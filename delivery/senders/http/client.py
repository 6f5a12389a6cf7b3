"""Sending one parcel, on aiohttp's connections.

A receiver's fault is an Outcome, never an exception. Redirects are not followed.
`delivery.senders.http.connector` decides which addresses may be connected to;
`subscriptions.values.built_in_receivers` says why Inturn's built-in receivers have a connector of
their own, which may connect to every address.
"""

import asyncio
import time
from collections.abc import Callable, Container, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from types import TracebackType

from delivery.outcome import EXCERPT_BYTES, Fault, Outcome, answer_class, class_of
from delivery.senders.http.answer import BegunAnswer
from delivery.senders.http.connector import GuardedConnector
from delivery.senders.http.exchange import CONNECT_SECONDS, HttpExchange, NotBegunError
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
        started_at = datetime.now(UTC)
        start = time.perf_counter()
        phases = None if self._traces is None else begin_phases(due_at=parcel.due_at)
        try:
            if request is None or not request.suits(parcel, endpoint, now=started_at):
                request = make_request(parcel, endpoint, now=started_at)
            answer = await self._attempt(request, may_begin, now=started_at)
        except NotBegunError:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_closing or task is None:
                raise
            task.uncancel()
            answer = _Reception(OutcomeClass.TIMEOUT, error="Inturn was stopped before the answer")
        # Every way to fail is an outcome; none may stop the lane.
        except Exception as error:  # noqa: BLE001
            answer = _failure(error, endpoint.timeout_seconds)
        outcome = Outcome(
            outcome=answer.outcome,
            started_at=started_at,
            duration_ms=round((time.perf_counter() - start) * 1000),
            status_code=answer.status_code,
            error=answer.error if request is None else request.recorded_error(answer.error),
            excerpt=answer.excerpt,
            retry_after_seconds=answer.retry_after_seconds,
        )
        if self._traces is not None and phases is not None:
            self._traces.record_attempt(traced_attempt(parcel), outcome, phases=phases.seconds())
        return outcome

    async def probe(self, url: str, *, seconds: float) -> str:
        """GET a probe URL; return an empty text if it answers 2xx, otherwise the fault."""
        try:
            exchange = self._exchange_for(url)
            target = exchange.target("GET", url)
            written = target.written({}, None)
            status = await exchange.request(
                target, written, _status, seconds=seconds, may_begin=_always
            )
            return "" if class_of(status) is OutcomeClass.SUCCESS else str(status)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_closing or task is None:
                raise
            task.uncancel()
            return "Inturn was stopped before the answer"
        except Exception as error:  # noqa: BLE001 - as for an attempt
            return _fault(error, seconds)[1]

    async def _attempt(
        self, request: Request, may_begin: Callable[[], bool], *, now: datetime
    ) -> "_Reception":
        endpoint, url = request.endpoint, request.url
        exchange = self._exchange_for(url)
        target = exchange.target(endpoint.method, url)
        return await exchange.request(
            target,
            target.written(request.headers, request.parcel.body),
            partial(_read, now=now, success_codes=endpoint.rules.success_codes),
            seconds=endpoint.timeout_seconds,
            may_begin=may_begin,
        )

    def _exchange_for(self, url: str) -> HttpExchange:
        return self._own_exchange if url in self._built_in_receivers else self._exchange


class _Reception:
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


async def _read(
    answer: BegunAnswer, *, now: datetime, success_codes: frozenset[int] | None
) -> _Reception:
    """Judge by the status; keep an excerpt of the body, and only of a failure."""
    outcome, error = answer_class(answer.status, success_codes=success_codes)
    reception = _Reception(outcome, status_code=answer.status)
    body = await _beginning(answer)
    note = answer.note
    reception.error = f"{error}; {note}" if error and note else error or note
    if outcome is not OutcomeClass.SUCCESS:
        reception.retry_after_seconds = retry_after(answer.head.value("Retry-After"), now=now)
        reception.excerpt = body[:EXCERPT_BYTES]
    return reception


async def _status(answer: BegunAnswer) -> int:
    await _beginning(answer)
    return answer.status


async def _beginning(answer: BegunAnswer) -> bytes:
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


def _failure(error: Exception, seconds: float) -> _Reception:
    outcome, words = _fault(error, seconds)
    answer = _Reception(outcome, error=words)
    answer.excerpt = evidence(error)
    return answer


def _fault(error: Exception, seconds: float) -> Fault:
    return fault_of(error, connect_seconds=min(CONNECT_SECONDS, seconds), seconds=seconds)
