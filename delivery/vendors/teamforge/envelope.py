"""The envelope in which TeamForge answers, success and failure alike."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

from subscriptions.api.problems import problem_of
from subscriptions.values.media_types import JSON

# TeamForge's clients take 400 for a wrong address: an event or a publisher that is not there.
_BAD_ADDRESS = frozenset({"no-such-event-type", "no-such-publish-id"})


def answered(status: int, content: Mapping[str, Any]) -> HttpResponse:
    return _envelope(status, content=content, errors=[], headers={})


def refused(error: Exception, _context: Mapping[str, Any]) -> HttpResponse | None:
    """Answer an exception of a view; None for what is a fault of ours."""
    problem = problem_of(error)
    if problem is None:
        return None
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
