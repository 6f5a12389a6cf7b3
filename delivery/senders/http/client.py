"""Sending one parcel with aiohttp.

A receiver's fault is an Outcome, never an exception. Redirects are not followed.
`delivery.senders.http.connector` decides which addresses may be connected to;
`subscriptions.values.own_receivers` says why Inturn's built-in receivers have a session of their
own, which may connect to every address.
"""

import asyncio
import time
from collections.abc import Callable, Container, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from types import TracebackType

import aiohttp
from django.conf import settings
from yarl import URL

from delivery.outcome import EXCERPT_BYTES, Fault, Outcome, answer_class, class_of
from delivery.senders.http.connector import GuardedConnector, GuardedRequest, NotBegunError
from delivery.senders.http.connector import may_begin as may_begin_now
from delivery.senders.http.faults import evidence, fault_of
from delivery.senders.http.phases import begin_phases, trace_configs
from delivery.senders.http.request import Request, make_request, traced_attempt
from delivery.senders.parcel import Endpoint, Parcel
from delivery.states import OutcomeClass
from delivery.tracing.traces import traces
from subscriptions.values.addresses import EVERY_NETWORK, Network
from subscriptions.values.resolver import Resolver
from subscriptions.values.resolver import resolver as this_resolver

# For all of it: resolving the name, connecting to one of its addresses, TLS.
CONNECT_SECONDS = 5
# Bodies of answers are read up to here so that the connection can be used again.
DRAIN_BYTES = 64 * 1024


def _always() -> bool:
    return True


class HttpClient:
    """An HTTP client for all lanes of one sender. Use it as an async context manager."""

    def __init__(
        self,
        *,
        allowed_networks: Sequence[Network],
        own_receivers: Container[str] = (),
        resolver: Resolver = this_resolver,
    ) -> None:
        self._allowed_networks = tuple(allowed_networks)
        self._own_receivers = own_receivers
        self._resolver = resolver
        # Set when Inturn stops: the outcome of an attempt cancelled from then on is that there was
        # no answer.
        self.is_closing = False
        self._traces = traces()

    async def __aenter__(self) -> "HttpClient":
        watched = trace_configs() if self._traces is not None else []
        self._session = _opened(self._allowed_networks, self._resolver, watched)
        self._own_session = _opened(EVERY_NETWORK, self._resolver, watched)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()
        await self._own_session.close()

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
        Raises NotBegunError if `may_begin` is false when the attempt gets a connection, or when its
        request is written.
        """
        started_at = datetime.now(UTC)
        start = time.perf_counter()
        phases = None if self._traces is None else begin_phases()
        try:
            if request is None or not request.suits(parcel, endpoint, now=started_at):
                request = make_request(parcel, endpoint, now=started_at)
            may_begin_now.set(may_begin)
            answer = await self._exchange(request, now=started_at)
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
            async with self._session_for(url).get(
                URL(url, encoded=True), allow_redirects=False, timeout=_timeout(seconds)
            ) as response:
                await _drain(response)
                return (
                    ""
                    if class_of(response.status) is OutcomeClass.SUCCESS
                    else str(response.status)
                )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_closing or task is None:
                raise
            task.uncancel()
            return "Inturn was stopped before the answer"
        except Exception as error:  # noqa: BLE001 - as for an attempt
            return _fault(error, seconds)[1]

    async def _exchange(self, request: Request, *, now: datetime) -> "_Reception":
        endpoint = request.endpoint
        async with self._session_for(request.url).request(
            endpoint.method,
            URL(request.url, encoded=True),
            data=request.parcel.body,
            headers=request.headers,
            allow_redirects=False,
            timeout=_timeout(endpoint.timeout_seconds),
        ) as response:
            return await _read(response, now, success_codes=endpoint.rules.success_codes)

    def _session_for(self, url: str) -> aiohttp.ClientSession:
        return self._own_session if url in self._own_receivers else self._session


def _opened(
    allowed_networks: Sequence[Network], resolver: Resolver, watched: list[aiohttp.TraceConfig]
) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=GuardedConnector(allowed_networks=allowed_networks, resolver=resolver),
        request_class=GuardedRequest,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding"),
        headers={"User-Agent": settings.USER_AGENT},
        trace_configs=watched,
    )
    # Otherwise aiohttp repeats a PUT or DELETE by itself when a kept connection breaks: one attempt
    # is one request. There is no public setting.
    session._retry_connection = False
    return session


@lru_cache(maxsize=1000)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=min(CONNECT_SECONDS, seconds))


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
    response: aiohttp.ClientResponse, now: datetime, *, success_codes: frozenset[int] | None
) -> _Reception:
    """Judge by the status; keep an excerpt of the body, and only of a failure."""
    outcome, error = answer_class(response.status, success_codes=success_codes)
    answer = _Reception(outcome, status_code=response.status, error=error)
    if answer.outcome is OutcomeClass.SUCCESS:
        await _drain(response)
        return answer
    answer.retry_after_seconds = retry_after(response.headers.get("Retry-After", ""), now=now)
    answer.excerpt = await _excerpt(response)
    return answer


async def _excerpt(response: aiohttp.ClientResponse) -> bytes:
    try:
        excerpt = await response.content.read(EXCERPT_BYTES)
        await _drain(response)
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError):
        # The status has arrived: that is the answer, with or without its body.
        excerpt = b""
    return excerpt


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read the rest of a short body to keep the connection; close it after a long one."""
    content = response.content
    if content.at_eof():
        return
    try:
        if len(await content.read(DRAIN_BYTES)) < DRAIN_BYTES and content.at_eof():
            return
    except (aiohttp.ClientError, TimeoutError):
        pass
    response.close()


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
