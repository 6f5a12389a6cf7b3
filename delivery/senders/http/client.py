"""Sending a parcel, on aiohttp's connections.

A receiver's fault is an Outcome, never an exception. Redirects are not followed.
`delivery.senders.http.connector` decides which addresses may be connected to;
`subscriptions.values.built_in_receivers` says why Inturn's built-in receivers have a connector of
their own, which may connect to every address.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

from delivery.lifecycle.traces import traces
from delivery.outcome import Fault, Outcome, class_of
from delivery.senders.http.answer import BegunAnswer
from delivery.senders.http.connector import GuardedConnector
from delivery.senders.http.exchange import CONNECT_SECONDS, HttpExchange, NotBegunError, Result
from delivery.senders.http.faults import evidence, fault_of
from delivery.senders.http.phases import begin_phases
from delivery.senders.http.reception import (
    Read,
    Reception,
    judged,
    read_beginning,
    read_safely,
    retry_after,
)
from delivery.senders.http.request import Request, make_request, traced_attempt
from delivery.senders.http.stream import Clock
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import OutcomeClass
from subscriptions.values.addresses import EVERY_NETWORK, Network
from subscriptions.values.resolver import Resolver
from subscriptions.values.resolver import resolver as this_resolver

STOPPED = "Inturn was stopped before the answer"

# The headers and the body of a request, None for none.
Sent: TypeAlias = tuple[Mapping[str, str], bytes | None]


def _always() -> bool:
    return True


class HttpClient:
    """An HTTP client for all lanes of a sender; an async context manager.

    `exchange` goes to every URL but those of built-in receivers.
    """

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
        self.exchange = self._opened(self._allowed_networks)
        self._own_exchange = self._opened(EVERY_NETWORK)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.exchange.connector.close()
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
            outcome = await self.attempt(request, self._read, may_begin=may_begin)
        if self._traces is not None and phases is not None:
            self._traces.record_attempt(traced_attempt(parcel), outcome, phases=phases.seconds())
        return outcome

    async def _read(
        self, answer: BegunAnswer, *, success_codes: frozenset[int] | None
    ) -> Reception:
        """Judge by the status; keep an excerpt of the body, and only of a failure."""
        is_success = success_codes is None and 200 <= answer.status < 300
        try:
            body = await read_beginning(answer, is_kept=not is_success)
        except asyncio.CancelledError:
            if not self._goes_on():
                raise
            body = b""
        reception = judged(answer, body, success_codes=success_codes)
        if reception.outcome is OutcomeClass.SUCCESS:
            reception.excerpt = b""
        else:
            wanted = answer.head.value("Retry-After")
            reception.retry_after_seconds = retry_after(wanted, now=datetime.now(UTC))
        return reception

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
                read=partial(read_safely, read, success_codes=endpoint.rules.success_codes),
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
        return self._own_exchange if url in self._built_in_receivers else self.exchange


async def _status(answer: BegunAnswer) -> int:
    await read_beginning(answer, is_kept=False)
    return answer.status


def _failure(error: Exception, seconds: float) -> Reception:
    outcome, words = _fault(error, seconds)
    answer = Reception(outcome, error=words)
    answer.excerpt = evidence(error)
    return answer


def _fault(error: Exception, seconds: float) -> Fault:
    return fault_of(error, connect_seconds=min(CONNECT_SECONDS, seconds), seconds=seconds)
