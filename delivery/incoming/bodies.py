"""Reading of request bodies, bounded in size, and of JSON without traps."""

import json
import math
import sys
from collections.abc import Mapping
from typing import IO, Any

from django.http import HttpRequest
from rest_framework.parsers import BaseParser

from delivery.incoming.problems import Problem

MAX_CONFIGURATION_BYTES = 1024 * 1024
# Enough for a configuration with some twenty thousand subscriptions.
MAX_DOCUMENT_BYTES = 20 * 1024 * 1024
MAX_DEPTH = 100
# The media type of a parser for every body.
ANY = "*/*"


def read_body(request: HttpRequest, *, max_bytes: int) -> bytes:
    """Read the body from the client; raises Problem 413 as soon as it is certain to be too long."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > max_bytes:
        raise too_large(max_bytes)
    return _bounded(request, max_bytes)


def too_large(max_bytes: int) -> Problem:
    return Problem(
        413, "too-large", f"The body is longer than the {max_bytes} bytes that are allowed here."
    )


def parse_json(body: bytes) -> Any:
    """Parse JSON; raises Problem 400 if it is invalid, or valid but unusable.

    Unusable are NaN, lone surrogates, and more than MAX_DEPTH levels.
    """
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise _not_json(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except _NotJSONError as error:
        raise _not_json(str(error)) from None
    except _UnusableError as error:
        raise _unusable(str(error)) from None
    except ValueError as error:
        raise _unusable(f"{json_error(error)}. Send it as a text") from None
    except RecursionError:
        raise _too_deep() from None
    check_json(value)
    return value


def json_error(error: ValueError) -> str:
    """Return the words for an error of Python's outside JSON's grammar."""
    if str(error).startswith("Exceeds the limit"):
        return f"it holds a number of more than {sys.get_int_max_str_digits():,} digits"
    return str(error)


def check_json(value: Any) -> None:
    """Raise Problem 400 for JSON unusable for Inturn; see `parse_json`."""
    # Level by level rather than recursive, because the depth itself is in question.
    level = [value]
    for _ in range(MAX_DEPTH):
        texts = [inner for inner in level if isinstance(inner, str)]
        if any(
            "\ud800" <= character <= "\udfff"
            for text in texts
            if not text.isascii()
            for character in text
        ):
            raise _unusable(
                "a text has half of a character, such as \\ud83d of an emoji that was cut. "
                "Send whole characters"
            )
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return
    raise _too_deep()


class JSONBody(BaseParser):
    """The parser of all bodies but messages."""

    media_type = "application/json"
    max_bytes = MAX_CONFIGURATION_BYTES

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return parse_json(_bounded(stream, self.max_bytes))


class AnyJSONBody(JSONBody):
    """The parser for clients of other systems: JSON, whatever they call it."""

    media_type = ANY


class DocumentBody(JSONBody):
    """The parser of configuration documents."""

    max_bytes = MAX_DOCUMENT_BYTES


def _bounded(stream: IO[bytes] | HttpRequest, max_bytes: int) -> bytes:
    body = stream.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise too_large(max_bytes)
    return body


def _within(value: Any) -> list[Any]:
    match value:
        case dict():
            return [*value, *value.values()]
        case list():
            return value
    return []


class _NotJSONError(ValueError):
    """A value is not JSON; the message says why."""


class _UnusableError(ValueError):
    """A value cannot be used; the message says why."""


def _refuse_constant(name: str) -> Any:
    raise _NotJSONError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _UnusableError(f"the number {text[:40]} is beyond 1.8e308. Send it as a text")
    return number


def _unusable(reason: str) -> Problem:
    return Problem(400, "not-json", f"The body is JSON that Inturn cannot use: {reason}.")


def _not_json(reason: str) -> Problem:
    return Problem(400, "not-json", f"The body is not valid JSON: {reason}.")


def _too_deep() -> Problem:
    return Problem(400, "too-deep", f"The body is nested deeper than {MAX_DEPTH} levels.")
