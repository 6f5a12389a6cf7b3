"""A trial of a filter before it is saved: the syntax, and the result on existing messages."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from django.core.exceptions import ValidationError

from delivery.console.shared import header_lines
from delivery.console.subscriptions.filter_preview import FilterPreview, preview_filter
from subscriptions.filters import FilterError, document, jsonb, parse_filter
from subscriptions.matching.match import find_mismatch
from subscriptions.models import EventType
from subscriptions.values.filter_strings import validate_filter_string
from subscriptions.values.header_values import HeaderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """An error in the typed values; for a filter with the line, and a mark below the column."""

    text: str
    line: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterVerdict:
    """The result of a filter on a message; it matches if `reason` is empty."""

    of: str
    reason: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The values of the form: the filter, and a message to try it on."""

    filter: str
    header_filter_string: str
    headers: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTrial:
    event_type: EventType | None
    mistakes: list[Mistake]
    verdicts: list[FilterVerdict]
    preview: FilterPreview | None


def mistake_in_filter(typed: Typed) -> Mistake | None:
    """Return the syntax error of the filter; None if there is none, or no filter."""
    if not typed.filter:
        return None
    try:
        parse_filter(typed.filter)
    except FilterError as error:
        line = typed.filter.split("\n")[error.line - 1]
        return Mistake(text=str(error), line=line.rstrip(), mark=f"{' ' * (error.column - 1)}^")
    return None


def try_filter(typed: Typed, *, event_type: EventType | None, may_preview: bool) -> FilterTrial:
    """Try the filter on every message there is; on none when it has a mistake."""
    headers, mistakes = _headers(typed)
    if wrong := mistake_in_filter(typed):
        mistakes = [wrong]
    if mistakes:
        return FilterTrial(event_type=event_type, mistakes=mistakes, verdicts=[], preview=None)
    return FilterTrial(
        event_type=event_type,
        mistakes=[],
        verdicts=_verdicts(typed, headers, event_type),
        preview=_preview(typed, event_type) if event_type and may_preview else None,
    )


def _headers(typed: Typed) -> tuple[dict[str, str], list[Mistake]]:
    try:
        validate_filter_string(typed.header_filter_string)
        return header_lines.parse_header_lines(typed.headers, stored={}), []
    except HeaderError as error:
        return {}, [Mistake(text=f"Test headers: {error}")]
    except ValidationError as error:
        return {}, [Mistake(text=f"Header filter string: {message}") for message in error.messages]


def _verdicts(
    typed: Typed, headers: Mapping[str, str], event_type: EventType | None
) -> list[FilterVerdict]:
    verdicts = []
    if event_type is not None and event_type.sample is not None:
        sample = orjson.dumps(event_type.sample)
        verdicts.append(_verdict(f"the sample of {event_type}", typed, headers, sample))
    if typed.body.strip():
        verdicts.append(
            _verdict("your own message", typed, headers, typed.body.encode(errors="replace"))
        )
    return verdicts


def _verdict(of: str, typed: Typed, headers: Mapping[str, str], body: bytes) -> FilterVerdict:
    seen = document(headers, body)
    mismatch = find_mismatch(typed.header_filter_string, typed.filter, seen)
    is_json = seen.body is not jsonb.MISSING
    note = "" if is_json else "The body is not JSON, so every path into $$->'Body' is null."
    return FilterVerdict(of=of, reason=str(mismatch or ""), note=note)


def _preview(typed: Typed, event_type: EventType) -> FilterPreview:
    return preview_filter(
        event_type.pk, header_filter_string=typed.header_filter_string, filter_text=typed.filter
    )
