"""Calls with `requests`, for callers that wait for one answer; the only module that imports it.

An endpoint is called on connections that are kept and guarded (see `delivery.calls.guard`), a
built-in receiver on connections of its own (see `subscriptions.values.built_in_receivers`). One
call is one request: nothing is repeated and no redirect is followed. A fault of the endpoint is an
Outcome, never an exception.
"""

import logging
import time
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter

from delivery.calls.fault_words import innermost, plain_text, unconnected, words_of
from delivery.calls.guard import CONNECT_SECONDS, GuardedCall, InformationalFloodError, pool_manager
from delivery.outcome import EXCERPT_BYTES, Fault, Outcome, answer_class
from delivery.states import OutcomeClass
from subscriptions.values.addresses import EVERY_NETWORK, AddressRefusedError, Network

if TYPE_CHECKING:
    # Commands do not need the models that it imports.
    from delivery.senders.http.request import Request

log = logging.getLogger(__name__)

# An answer is held in memory whole before it is passed on.
MAX_ANSWER_BYTES = 10 * 1024 * 1024
# How long a call of Inturn itself waits for each part of the answer.
ASKED_SECONDS = 60.0
KEPT_HOSTS = 100
KEPT_CONNECTIONS_A_HOST = 20

_PART_BYTES = 64 * 1024
_MAX_CONTENT_TYPE_LENGTH = 255
_DECODABLE = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})

Response = requests.Response


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAnswer:
    """The whole answer of an endpoint; `content_type` is empty without one. The body is decoded."""

    status_code: int
    content_type: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a call; without an answer the outcome says why none can be passed on.

    `headers` are those of any answer, fit to be shown.
    """

    outcome: Outcome
    answer: EndpointAnswer | None = None
    headers: tuple[tuple[str, str], ...] = ()


class NoAnswerError(Exception):
    """No answer came; the message is for a person."""


def call_endpoint(
    request: "Request",
    *,
    allowed_networks: Collection[Network],
    built_in_receivers: Container[str] = (),
) -> Called:
    """Call the request's endpoint and wait for its answer, as long as its subscription says."""
    start = time.perf_counter()
    is_own = request.url in built_in_receivers
    with GuardedCall(
        seconds=request.endpoint.timeout_seconds,
        allowed_networks=EVERY_NETWORK if is_own else allowed_networks,
    ) as call:
        try:
            called = _exchange(request, call, session=_own_session() if is_own else _session())
        except Exception as error:  # noqa: BLE001 - every way to fail is an outcome
            outcome, words = _failure(error, call)
            called = Called(
                Outcome(outcome=outcome, started_at=request.made_at, duration_ms=0, error=words)
            )
    duration_ms = round((time.perf_counter() - start) * 1000)
    recorded = request.recorded_error(called.outcome.error)
    return replace(called, outcome=replace(called.outcome, duration_ms=duration_ms, error=recorded))


def post_guarded(
    url: str, body: bytes, *, seconds: float, allowed_networks: Collection[Network]
) -> int:
    """Post JSON to a URL that a person configured and return the status; raise NoAnswerError.

    The address is guarded like that of an endpoint.
    """
    headers = {"Content-Type": "application/json"}
    with GuardedCall(seconds=seconds, allowed_networks=allowed_networks) as call:
        timeout = call.timeout
        try:
            with _session().post(
                url, data=body, headers=headers, timeout=timeout, stream=True, allow_redirects=False
            ) as response:
                return response.status_code
        except Exception as error:
            _, words = _failure(error, call)
            raise NoAnswerError(words) from error


def call_trusted(
    session: requests.Session,
    method: str,
    url: str,
    *,
    body: bytes | None,
    headers: Mapping[str, str | bytes],
) -> Response:
    """Call a trusted server, such as Inturn itself; raise NoAnswerError."""
    timeout = (CONNECT_SECONDS, ASKED_SECONDS)
    try:
        return session.request(
            method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
        )
    except requests.RequestException as error:
        raise NoAnswerError(_reason(error)) from error


def bare_session() -> requests.Session:
    """Return an unguarded session of `requests`, for calls of Inturn itself."""
    return requests.Session()


class _Adapter(HTTPAdapter):
    """An adapter with guarded connections."""

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **_: Any
    ) -> None:
        self.poolmanager = pool_manager(hosts=connections, connections_a_host=maxsize)

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Do nothing: the connections verify; `requests` would load its authorities each time."""


class _Session(requests.Session):
    """Takes no settings from its environment (a proxy), and keeps no state (cookies)."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self.headers.clear()
        self.headers["User-Agent"] = settings.USER_AGENT
        adapter = _Adapter(pool_connections=KEPT_HOSTS, pool_maxsize=KEPT_CONNECTIONS_A_HOST)
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: Response) -> None:
        """Return None: to find the target `requests` would read the whole answer."""


@cache
def _session() -> _Session:
    """Return the session of this process.

    Threads share it, because a call changes nothing in it.
    """
    return _Session()


@cache
def _own_session() -> _Session:
    """Return the session for built-in receivers alone, whose connections no other call may use."""
    return _Session()


def _exchange(request: "Request", call: GuardedCall, *, session: _Session) -> Called:
    endpoint = request.endpoint
    prepared = session.prepare_request(
        requests.Request(
            endpoint.method, request.url, data=request.parcel.body, headers=_sent(request)
        )
    )
    # As it was saved; `requests` would write it in another form.
    prepared.url = request.url
    timeout = call.timeout
    with session.send(prepared, stream=True, timeout=timeout, allow_redirects=False) as response:
        return _read(response, call, request=request)


def _sent(request: "Request") -> dict[str, str | bytes]:
    # A publisher's content type may exceed Latin-1, the limit for text here.
    return {
        name: value if value.isascii() else value.encode()
        for name, value in request.headers.items()
    }


def _read(response: Response, call: GuardedCall, *, request: "Request") -> Called:
    """Read the whole answer, or return why it cannot be passed on."""
    body = bytearray()
    too_slow = OutcomeClass.TIMEOUT, f"no whole answer within {call.seconds:g} s"
    fault = _read_into(body, response, too_slow)
    if call.is_over:
        # An answer that lasts until the connection ends looks complete when the connection is cut.
        fault = too_slow
    success_codes = request.endpoint.rules.success_codes
    outcome, words = fault or answer_class(response.status_code, success_codes=success_codes)
    result = Outcome(
        outcome=outcome,
        started_at=request.made_at,
        duration_ms=0,
        status_code=response.status_code,
        error=words,
        excerpt=bytes(body[:EXCERPT_BYTES]),
    )
    answer = EndpointAnswer(
        status_code=response.status_code, content_type=_content_type(response), body=bytes(body)
    )
    return Called(result, None if fault else answer, _headers(response))


def _headers(response: Response) -> tuple[tuple[str, str], ...]:
    return tuple((plain_text(name), plain_text(value)) for name, value in response.headers.items())


def _read_into(body: bytearray, response: Response, too_slow: Fault) -> Fault | None:
    if words := _unusable(response):
        return OutcomeClass.SERVER_ERROR, words
    try:
        for part in response.iter_content(_PART_BYTES):
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                return (
                    OutcomeClass.SERVER_ERROR,
                    f"its answer is longer than {MAX_ANSWER_BYTES} bytes",
                )
    except requests.exceptions.ContentDecodingError:
        return OutcomeClass.SERVER_ERROR, "its answer does not match its Content-Encoding"
    except requests.RequestException as error:
        if isinstance(innermost(error), TimeoutError):
            # The thread that cuts the connection is very late.
            return too_slow
        return OutcomeClass.UNREACHABLE, "its answer broke off"
    return None


def _unusable(response: Response) -> str:
    if not 200 <= response.status_code <= 599:
        return "its answer has no status that could be handed on"
    encodings = response.headers.get("Content-Encoding", "").lower().split(",")
    unknown = {encoding.strip() for encoding in encodings} - _DECODABLE
    return "its answer has a Content-Encoding that was not requested" if unknown else ""


def _content_type(response: Response) -> str:
    """Return it as received, except for characters that no header may hold."""
    content_type = " ".join(response.headers.get("Content-Type", "").split())
    if (
        not content_type.isascii()
        or not content_type.isprintable()
        or len(content_type) > _MAX_CONTENT_TYPE_LENGTH
    ):
        return "application/octet-stream"
    return content_type


def _failure(error: Exception, call: GuardedCall) -> Fault:
    match call.connect_error:
        case AddressRefusedError() as refused:
            return OutcomeClass.REFUSED_ADDRESS, str(refused)
        case TimeoutError():
            return OutcomeClass.TIMEOUT, f"no connection within {call.connect_seconds:g} s"
        case OSError() as failed:
            return OutcomeClass.UNREACHABLE, f"{unconnected(failed)} ({call.place})"
    if call.is_over or isinstance(error, requests.Timeout):
        return OutcomeClass.TIMEOUT, f"no answer within {call.seconds:g} s"
    if isinstance(error, requests.exceptions.SSLError):
        return OutcomeClass.TLS, plain_text(words_of(innermost(error)))
    if isinstance(flood := innermost(error), InformationalFloodError):
        return OutcomeClass.UNREACHABLE, str(flood)
    if isinstance(error, requests.ConnectionError):
        return OutcomeClass.UNREACHABLE, "the connection was closed before an answer came"
    log.error("cannot call: an error of Inturn's own", exc_info=error)
    return OutcomeClass.UNSENDABLE, f"Inturn could not send it: {type(error).__name__}, see its log"


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "the connection is refused or was closed; is it running there?"
    return str(error)
