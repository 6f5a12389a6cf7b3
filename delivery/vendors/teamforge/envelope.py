"""The envelope of TeamForge's answers, for success and failure alike."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

from delivery.incoming.problems import Problem, problem_of
from subscriptions.values.media_types import JSON

# For TeamForge's clients, 400 is a wrong address, such as an unknown event type or publisher.
_BAD_ADDRESS = frozenset({"no-such-address", "no-such-event-type", "no-such-publish-id"})


def answer_in_envelope(status: int, content: Mapping[str, Any]) -> HttpResponse:
    return _envelope(status, content=content, errors=[], headers={})


def refusal_in_envelope(error: Exception, _context: Mapping[str, Any]) -> HttpResponse | None:
    """Return the answer to an exception of a view; None for an internal error."""
    problem = problem_of(error)
    return None if problem is None else problem_in_envelope(problem)


def problem_in_envelope(problem: Problem) -> HttpResponse:
    status = 400 if problem.code in _BAD_ADDRESS else problem.status_code
    return _envelope(status, content=None, errors=[str(problem.detail)], headers=problem.headers)


def _envelope(
    status: int, *, content: Mapping[str, Any] | None, errors: list[str], headers: Mapping[str, str]
) -> HttpResponse:
    document = {
        "HTTPStatusCode": status,
        "HTTPStatusText": HTTPStatus(status).phrase,
        "Success": status < HTTPStatus.BAD_REQUEST,
        "ErrorText": errors[0] if errors else "",
        "ErrorMessages": errors,
        "Response": content,
    }
    return HttpResponse(
        orjson.dumps(document),
        status=status,
        content_type=JSON,
        headers={"Cache-Control": "no-store", **headers},
    )
