"""The items of a batch, parsed from a JSON array or JSON lines; bodies stay the bytes sent."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, TypeAlias

import orjson

from delivery.incoming.bodies import check_json, parse_json
from delivery.incoming.problems import Problem, invalid_field
from subscriptions.filters import header_name

MAX_ITEMS = 1000
LINES = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)

_FIELDS = frozenset({"event", "headers", "body", "body_base64", "idempotency_key"})
_WHITE = " \t\n\r"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A message of a batch, with valid types. `is_json`: the body was sent as JSON."""

    event: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    is_json: bool
    idempotency_key: str | None


def split_batch(body: bytes, *, content_type: str) -> list[str]:
    """Return the text of each item.

    Raise Problem 400 if the body is not in the format of the content type.
    """
    if _is_lines(content_type):
        texts = list(islice(_lines(_text(body)), MAX_ITEMS + 1))
    else:
        text = _text(body)
        _refuse_too_many(text)
        if not isinstance(parse_json(body), list):
            raise Problem(
                400,
                "invalid",
                "Send a JSON array of messages, or JSON lines as application/x-ndjson.",
            )
        texts = list(_elements(text))
    if len(texts) > MAX_ITEMS:
        raise _too_many()
    return texts


def _is_lines(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in LINES


def _lines(text: str) -> Iterator[str]:
    """Yield the lines with content.

    `str.splitlines` would also split at characters allowed in JSON strings.
    """
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if line := text[at:end].strip(_WHITE):
            yield line
        at = end + 1


def _refuse_too_many(text: str) -> None:
    """Raise Problem 413 at the first item over the limit.

    To parse millions of items would delay all other requests.
    """
    # The parser reports invalid JSON.
    with suppress(ValueError, IndexError, StopIteration, RecursionError):
        if next(islice(_elements(text), MAX_ITEMS, None), None) is not None:
            raise _too_many()


def _too_many() -> Problem:
    return Problem(
        413, "too-large", f"A batch has at most {MAX_ITEMS} messages; this one has more."
    )


def item_of(text: str) -> Item:
    """Return the item; raise Problem 400 unless it is `{event, headers, body, idempotency_key}`."""
    return _item(parse_json(text.encode("utf-8", "surrogatepass")), text)


def read_items(body: bytes, *, content_type: str) -> list[Item | Problem]:
    """Return the results of `split_batch` and `item_of`; an array is parsed once, not three times.

    Raise Problem or ValueError if the whole body is invalid; `split_batch` then reports the reason.
    """
    if _is_lines(content_type):
        return [_attempt(item_of, text) for text in split_batch(body, content_type=content_type)]
    items = orjson.loads(body)
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise ValueError("no array of messages")
    check_json(items)
    return [_attempt(_item, *pair) for pair in zip(items, _elements(body.decode()), strict=True)]


def _attempt(read: Callable[..., Item], *arguments: Any) -> Item | Problem:
    try:
        return read(*arguments)
    except Problem as problem:
        return problem


def _item(item: Any, text: str) -> Item:
    """Return the item parsed from the text; raise Problem."""
    if not isinstance(item, dict):
        raise Problem(
            400,
            "invalid",
            "An item is an object with event, body and, if wanted, headers and idempotency_key.",
        )
    if unknown := set(item) - _FIELDS:
        raise invalid_field(
            min(unknown), f"There is no such field; known are {', '.join(sorted(_FIELDS))}."
        )
    return Item(
        event=_string(item, "event"),
        headers=headers_of(item.get("headers", {})),
        body=body_of(item, text),
        is_json="body" in item,
        idempotency_key=_string(item, "idempotency_key")
        if item.get("idempotency_key") is not None
        else None,
    )


def body_of(item: Mapping[str, Any], text: str) -> bytes:
    """Return the bytes of `body`, exactly as in the parsed text, or of `body_base64`."""
    if ("body" in item) == ("body_base64" in item):
        raise invalid_field("body", "Give either body (as JSON) or body_base64 (any bytes).")
    return _bytes(item) if "body_base64" in item else _slice_of_body(text)


def headers_of(headers: Any) -> dict[str, str]:
    """Return headers by lower-case hyphenated name; raise Problem."""
    if not isinstance(headers, dict) or not all(
        isinstance(value, str) for value in headers.values()
    ):
        raise invalid_field("headers", "Give an object of header names and values, both text.")
    return {header_name(name): value for name, value in headers.items()}


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Problem(
            400, "not-json", f"The body is not valid JSON: byte {error.start} is not UTF-8."
        ) from None


def _string(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise invalid_field(name, "Give a text.")
    return value


def _bytes(item: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(
            _string(item, "body_base64") if item["body_base64"] != "" else "", validate=True
        )
    except ValueError:
        raise invalid_field("body_base64", "This is not base64.") from None


# The text is known to be valid JSON when it is sliced. To parse and serialize it would change
# numbers and spaces, but the body is stored and signed as it was sent.

_Scan: TypeAlias = Callable[[str, int], tuple[Any, int]]
_scan: _Scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def _slice_of_body(text: str) -> bytes:
    body = ""
    for name, value in _members(text):
        if name == "body":
            # For a duplicate name the last value counts, as in JSON parsers.
            body = value
    return body.encode()


def _elements(text: str) -> Iterator[str]:
    at = _skip(text, text.index("[") + 1)
    while text[at] != "]":
        _, end = _scan(text, at)
        yield text[at:end]
        at = _skip(text, end, separator=",")


def _members(text: str) -> Iterator[tuple[str, str]]:
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        name, colon = scanstring(text, at + 1)
        start = _skip(text, colon, separator=":")
        _, end = _scan(text, start)
        yield name, text[start:end]
        at = _skip(text, end, separator=",")


def _skip(text: str, at: int, *, separator: str = "") -> int:
    skipped = _WHITE + separator
    while text[at] in skipped:
        at += 1
    return at
