"""The answer to the publisher of a SYNC message: the endpoint's answer, unchanged."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from delivery.api.base.schema import ProblemSerializer
from delivery.calls.slots import NoSlotError
from delivery.calls.sync import Exchange, exchange_message
from delivery.incoming.problems import Problem
from delivery.models.message import public_id
from delivery.outcome import Outcome
from delivery.publishing.drafts import Draft
from delivery.states import OutcomeClass
from subscriptions.models import EventType, Publisher

MESSAGE_HEADER = "inturn-message"
BUSY_SECONDS = 1

_REFUSED_HEADERS = {
    "idempotency-key": "the endpoint's answer is not kept, so a repetition could not get it again",
    "callbackurl": "the answer to this call is the endpoint's answer",
}

RESPONSES: dict[Any, Any] = {
    (200, "*/*"): OpenApiResponse(
        OpenApiTypes.BINARY,
        (
            "SYNC event types only: the endpoint's answer, its status (whatever it is), "
            "body and Content-Type. 200 without a body when no subscription qualifies, "
            "or when the endpoint gave no answer and its subscription has `lets_pass_on_timeout`."
        ),
    ),
    (502, "application/problem+json"): OpenApiResponse(
        ProblemSerializer,
        (
            "SYNC event types only: the endpoint could not be called, "
            "or its answer could not be handed on."
        ),
    ),
    (504, "application/problem+json"): OpenApiResponse(
        ProblemSerializer, "SYNC event types only: the endpoint gave no answer in time."
    ),
}
HEADER = OpenApiParameter(
    MESSAGE_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="SYNC event types only: the message's id, msg_…",
    response=[200, 502, 504],
)


def refuse_headers(event_type: EventType, headers: Mapping[str, str]) -> None:
    """Raise Problem for headers forbidden for a SYNC event type."""
    for name, reason in _REFUSED_HEADERS.items():
        if name in headers:
            detail = (
                f"{event_type.name} is SYNC, where the header {name} has no meaning: "
                f"{reason}. Leave it out."
            )
            raise Problem(400, "not-with-sync", detail)


def publish_sync(publisher: Publisher, draft: Draft, *, credential: str = "") -> HttpResponse:
    """Publish and answer.

    Raise PublishRefusedError, and Problem when there is no answer to return.
    """
    refuse_headers(draft.event_type, draft.headers)
    try:
        ended = exchange_message(publisher, draft, credential=credential)
    except NoSlotError:
        raise _busy() from None
    message_id = public_id(ended.message_id)
    response = _answer(ended, message_id)
    response[MESSAGE_HEADER] = message_id
    return response


def _answer(ended: Exchange, message_id: str) -> HttpResponse:
    if ended.called is not None and ended.called.answer is not None:
        answer = ended.called.answer
        return _response(answer.status_code, answer.body, answer.content_type)
    if ended.called is None or ended.counts_as_unmatched:
        return _response(200, b"", "")
    raise _problem(ended.called.outcome, ended, message_id)


def _response(status: int, body: bytes, content_type: str) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type=content_type)
    if not content_type:
        # Otherwise Django sets text/html.
        del response["Content-Type"]
    # A page made by the endpoint must not run on the console's origin.
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def _problem(outcome: Outcome, ended: Exchange, message_id: str) -> Problem:
    """Return the problem for a missing answer.

    It names the kind of failure only: the endpoint's address is not for the publisher to see.
    """
    if ended.is_held:
        detail = (
            f"{ended.subscription} is HELD, so its endpoint was not called, "
            f"and there is no answer. {message_id} is stored as FAILED; "
            "publish it again when sending has been released."
        )
        return Problem(
            502, "no-answer", detail, headers={MESSAGE_HEADER: message_id}, message=message_id
        )
    if outcome.outcome is OutcomeClass.SCRIPT:
        return _script_problem(ended, message_id)
    is_late = outcome.outcome is OutcomeClass.TIMEOUT
    failure = (
        "gave no answer in time"
        if is_late
        else f"gave no answer that can be handed on ({_word(outcome)})"
    )
    return Problem(
        504 if is_late else 502,
        "no-answer-in-time" if is_late else "no-answer",
        (
            f"The endpoint of {ended.subscription} {failure}. "
            f"{message_id} is stored and says what happened; it may have reached the endpoint, "
            "so publish it again only if that does no harm."
        ),
        headers={MESSAGE_HEADER: message_id},
        message=message_id,
    )


def _script_problem(ended: Exchange, message_id: str) -> Problem:
    return Problem(
        502,
        "script-failed",
        f"The script of {ended.subscription} made no answer. {message_id} is stored and says why.",
        headers={MESSAGE_HEADER: message_id},
        message=message_id,
    )


def _word(outcome: Outcome) -> str:
    answered = outcome.status_code is not None
    return f"{outcome.status_code}, {outcome.error}" if answered else str(outcome.outcome.label)


def _busy() -> Problem:
    return Problem(
        503,
        "too-many-calls",
        (
            "So many SYNC calls are waiting for their endpoints "
            "that another would hold up everything else. Nothing is stored; repeat it soon. "
            "An administrator can allow more with WEB_THREADS."
        ),
        headers={"Retry-After": str(BUSY_SECONDS)},
    )
