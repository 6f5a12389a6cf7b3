"""Problem documents (RFC 9457), the format of every error under /api/."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import orjson
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.db.models import ProtectedError
from django.http import Http404, HttpResponse
from rest_framework import exceptions
from rest_framework.exceptions import APIException

from subscriptions.database_away import is_away, is_locked, is_read_only, reconnect_next_time
from subscriptions.values.refusals import Place

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
# A detail may quote the input.
MAX_DETAIL_LENGTH = 500
# Of the sentence for the whole document, which may join several.
MAX_PROBLEM_LENGTH = 4 * MAX_DETAIL_LENGTH
# A small body may have a fault in each of a hundred thousand places.
MAX_ERRORS = 200

FieldError = dict[str, Any]


class Problem(APIException):
    """An error with a status, a code for programs, and a detail with the remedy.

    `members` are further members of the document, such as the `path` of a schema violation. Of the
    list `errors` the first MAX_ERRORS are kept, with `more`, the number of others; texts are cut.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(_cut(detail, MAX_PROBLEM_LENGTH), code)
        self.status_code = status
        self.code = code
        self.headers = dict(headers or {})
        self.members = members | _bounded_errors(members.get("errors"))

    @property
    def document(self) -> dict[str, Any]:
        return {
            "type": f"urn:inturn:problem:{self.code}",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": str(self.detail),
            **self.members,
        }

    def response(self) -> HttpResponse:
        return HttpResponse(
            orjson.dumps(self.document),
            status=self.status_code,
            content_type=CONTENT_TYPE,
            headers=self.headers,
        )


def problem_response(error: Exception, _context: Mapping[str, Any]) -> HttpResponse | None:
    """Return the answer to a view's exception; None if it is our fault (see `unexpected_error`)."""
    problem = problem_of(error)
    return None if problem is None else problem.response()


def problem_of(error: BaseException | None) -> Problem | None:
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return invalid_fields(list(field_errors(error.detail)))
        case APIException():
            return _of_framework(error)
        case Http404():
            return Problem(
                404,
                "not-found",
                "There is nothing of that name or id here, or not for this key. A GET of the list, "
                "without name or id, shows what there is.",
            )
        case PermissionDenied():
            return Problem(403, "forbidden", "This is not allowed.")
        case ProtectedError():
            return _in_use(error)
        case DataError():
            return Problem(400, "invalid", "A value cannot be stored: it is too large or not text.")
    return problem_of_database(error)


def problem_of_database(error: BaseException | None) -> Problem | None:
    """Return a 503 if the database is silent, read-only or locked; None for other errors."""
    if is_read_only(error):
        reconnect_next_time()
        return database_read_only()
    if is_locked(error):
        return row_locked()
    return database_away() if is_away(error) else None


def invalid_fields(errors: Sequence[FieldError]) -> Problem:
    """Return a 400 with an entry for each error: `field` (a path with dots), `detail`, place."""
    named = [
        f"{error['field']}: {error['detail']}" if error["field"] else error["detail"]
        for error in errors
    ]
    return Problem(400, "invalid", " ".join(named[:3]), errors=list(errors))


def invalid_field(field: str, detail: str) -> Problem:
    return invalid_fields([{"field": field, "detail": detail}])


def database_away() -> Problem:
    return Problem(
        503,
        "database-away",
        "The database does not answer. Repeat it later, a publish with the same Idempotency-Key: "
        "if the connection broke during the commit, it may be stored.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def database_read_only() -> Problem:
    return Problem(
        503,
        "database-read-only",
        "The database is read-only now, as during a fail-over, and nothing was changed. Repeat the "
        "request later; reading still works.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def row_locked() -> Problem:
    return Problem(
        503,
        "row-locked",
        "Another session of the database has locked a row that this change needs, so nothing was "
        "changed. Repeat the request; if that does not help, end the session that holds the lock.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def unexpected_error() -> Problem:
    return Problem(500, "unexpected", "Inturn failed; its log has the reason.")


def _bounded_errors(errors: Sequence[FieldError] | None) -> dict[str, Any]:
    if not errors:
        return {}
    shown = [
        {
            name: _cut(value, MAX_DETAIL_LENGTH) if isinstance(value, str) else value
            for name, value in error.items()
        }
        for error in errors[:MAX_ERRORS]
    ]
    more = len(errors) - len(shown)
    return {"errors": shown} | ({"more": more} if more else {})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _of_framework(error: APIException) -> Problem:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    detail = error.detail if isinstance(error.detail, str) else str(error.default_detail)
    if isinstance(error, exceptions.MethodNotAllowed):
        detail = f"{detail} The header Allow lists the possible methods."
    if isinstance(error, exceptions.NotAuthenticated):
        detail = "Send a key, with the header Authorization: Bearer <key>."
    if isinstance(error, exceptions.UnsupportedMediaType):
        detail = "Send JSON, with the header Content-Type: application/json."
    return Problem(
        error.status_code, str(error.default_code).replace("_", "-"), detail, headers=headers
    )


def _in_use(error: ProtectedError) -> Problem:
    kinds = sorted(
        {str(instance._meta.verbose_name_plural) for instance in error.protected_objects}
    )
    return Problem(
        409,
        "in-use",
        f"It has {' and '.join(kinds)}, which would lose it; remove or change those first.",
    )


def field_errors(detail: Any, path: str = "") -> Iterator[FieldError]:
    """Yield an entry for each error in a ValidationError's detail."""
    match detail:
        case dict():
            for name, inner in detail.items():
                yield from field_errors(inner, _path_to(path, str(name)))
        case list():
            for index, inner in enumerate(detail):
                yield from field_errors(
                    inner, path if isinstance(inner, str) else _path_to(path, str(index))
                )
        case _:
            place = getattr(detail, "code", None)
            error = {"field": path, "detail": str(detail)[:MAX_DETAIL_LENGTH]}
            yield error | (asdict(place) if isinstance(place, Place) else {})


def _path_to(path: str, name: str) -> str:
    if name in ("non_field_errors", "__all__"):
        return path
    return f"{path}.{name}" if path else name
