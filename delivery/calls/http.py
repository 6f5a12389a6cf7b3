"""A call of an endpoint, for a caller waiting for the answer.

The senders' client makes it, in the event loop of this process (`delivery.calls.client_thread`). A
call is one request: nothing is repeated, no redirect is followed, no cookie is kept, and no proxy
of the environment is used. A fault of the endpoint is an Outcome, never an exception.
"""

import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from django.conf import settings

from delivery.calls.client_thread import ClientThread, client_thread
from delivery.calls.content_codings import UndecodableError, codings_of, decoded
from delivery.outcome import EXCERPT_BYTES, Fault, Outcome, unsendable_outcome
from delivery.senders.http.answer import BegunAnswer, BodyEnd
from delivery.senders.http.client import STOPPED
from delivery.senders.http.faults import fault_of
from delivery.senders.http.framing import AnswerHead
from delivery.senders.http.reception import Reception, judged, read_beginning
from delivery.senders.http.request import Request
from delivery.states import OutcomeClass
from subscriptions.values.built_in_receivers import built_in_receivers

# An answer is held in memory whole before it is passed on.
MAX_ANSWER_BYTES = 10 * 1024 * 1024

_MAX_CONTENT_TYPE_LENGTH = 255
_MAX_SHOWN_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAnswer:
    """The whole answer of an endpoint; `content_type` is empty if absent. The body is decoded."""

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


def endpoint_client() -> ClientThread:
    """Return the client for the endpoints of this installation, with the senders' guard."""
    environment = settings.ENVIRONMENT
    return client_thread(
        allowed_networks=environment.allowed_networks,
        built_in_receivers=built_in_receivers(environment.base_url),
    )


def call_for_answer(request: Request, *, client: ClientThread | None = None) -> Called:
    """Call the request's endpoint for the whole answer, within the subscription's time limit.

    An answer that is incomplete, or cannot be passed on, is a fault whatever the status.
    """
    received = _WholeAnswer()
    outcome = _attempted(_uncoded(request), received, client=client)
    if outcome.status_code is None or received.head is None:
        # The body may have begun to arrive when the call was cancelled.
        return Called(outcome, headers=received.headers)
    body, fault = received.decoded(seconds=request.endpoint.timeout_seconds)
    outcome = replace(outcome, excerpt=body[:EXCERPT_BYTES])
    if fault is not None:
        error = request.recorded_error(fault[1])
        return Called(replace(outcome, outcome=fault[0], error=error), headers=received.headers)
    answer = EndpointAnswer(
        status_code=received.head.status, content_type=_content_type(received.head), body=body
    )
    return Called(outcome, answer, received.headers)


def call_as_sender(request: Request, *, client: ClientThread | None = None) -> Called:
    """Call the request's endpoint as a sender does: an answer's status decides, whole or not.

    The beginning of the body is in the outcome, whatever the status.
    """
    received = _Beginning()
    outcome = _attempted(request, received, client=client)
    return Called(outcome, headers=received.headers)


def post_json(url: str, body: bytes, *, seconds: float) -> str:
    """Post to a URL configured by a person; return the fault, empty if it answers 2xx."""
    try:
        return endpoint_client().wait_for(
            lambda client: client.post_json(url, body, seconds=seconds), seconds=seconds
        )
    except Exception as error:  # noqa: BLE001 - as for an endpoint
        return fault_of(error, connect_seconds=seconds, seconds=seconds)[1]


class _Beginning:
    """The beginning of an answer, as a sender reads it; the client calls `read`."""

    head: AnswerHead | None = None

    async def read(self, answer: BegunAnswer, *, success_codes: frozenset[int] | None) -> Reception:
        self.head = answer.head
        return judged(answer, await self.body_of(answer), success_codes=success_codes)

    async def body_of(self, answer: BegunAnswer) -> bytes:
        return await read_beginning(answer)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers, fit to be shown."""
        fields = self.head.fields if self.head else ()
        return tuple((_plain_text(name), _plain_text(value)) for name, value in fields)


class _WholeAnswer(_Beginning):
    """An answer with the whole body, as far as it can be read."""

    _body = b""
    # Until it is read to another end.
    _end = BodyEnd.BROKEN
    _note = ""

    async def body_of(self, answer: BegunAnswer) -> bytes:
        if answer.has_usable_body:
            self._body, self._end = await answer.read(MAX_ANSWER_BYTES)
        else:
            self._body, self._end = await read_beginning(answer), BodyEnd.UNUSABLE
        self._note = answer.note
        return self._body

    def decoded(self, *, seconds: float) -> tuple[bytes, Fault | None]:
        """Return the decoded body, and why the answer cannot be passed on, if so."""
        assert self.head is not None
        codings = codings_of(self.head.value("Content-Encoding"))
        if not 200 <= self.head.status <= 599:
            return self._body, _unusable("its answer has no status that could be handed on")
        if codings is None:
            return self._body, _unusable("its answer has a Content-Encoding that was not requested")
        fault = self._fault(seconds)
        try:
            body = decoded(self._body, codings, most=MAX_ANSWER_BYTES + 1)
        except UndecodableError as error:
            mismatch = _unusable("its answer does not match its Content-Encoding")
            return error.begun, fault or mismatch
        return body, fault or (_TOO_LONG if len(body) > MAX_ANSWER_BYTES else None)

    def _fault(self, seconds: float) -> Fault | None:
        match self._end:
            case BodyEnd.OVERDUE:
                return OutcomeClass.TIMEOUT, f"no whole answer within {seconds:g} s"
            case BodyEnd.BROKEN:
                return OutcomeClass.UNREACHABLE, "its answer broke off"
            case BodyEnd.UNUSABLE:
                return _unusable(f"nobody can tell which bytes are its body; {self._note}")
            case BodyEnd.CUT:
                return _TOO_LONG
        return None


def _uncoded(request: Request) -> Request:
    """Ask for a body in no coding, because it is for a publisher, who asked for none."""
    if any(name.lower() == "accept-encoding" for name in request.headers):
        return request
    return replace(request, headers=request.headers | {"Accept-Encoding": "identity"})


def _attempted(request: Request, received: _Beginning, *, client: ClientThread | None) -> Outcome:
    if fault_of_ours := request.endpoint.fault:
        return unsendable_outcome(fault_of_ours, now=request.made_at)
    seconds = request.endpoint.timeout_seconds
    started_at, start = datetime.now(UTC), time.perf_counter()
    try:
        return (client or endpoint_client()).wait_for(
            lambda client: client.attempt(request, received.read), seconds=seconds
        )
    except CancelledError:
        fault: Fault = OutcomeClass.TIMEOUT, STOPPED
    except Exception as error:  # noqa: BLE001 - every way to fail is an outcome
        fault = fault_of(error, connect_seconds=seconds, seconds=seconds)
    duration_ms = round((time.perf_counter() - start) * 1000)
    return Outcome(
        outcome=fault[0],
        started_at=started_at,
        duration_ms=duration_ms,
        error=request.recorded_error(fault[1]),
    )


def _content_type(head: AnswerHead) -> str:
    """Return it as received, except for characters forbidden in headers."""
    content_type = " ".join(head.value("Content-Type").split())
    if (
        not content_type.isascii()
        or not content_type.isprintable()
        or len(content_type) > _MAX_CONTENT_TYPE_LENGTH
    ):
        return "application/octet-stream"
    return content_type


def _unusable(words: str) -> Fault:
    return OutcomeClass.SERVER_ERROR, words


_TOO_LONG = _unusable(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")


def _plain_text(text: str) -> str:
    """Replace characters that cannot be stored: the text is a receiver's."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )[:_MAX_SHOWN_LENGTH]
