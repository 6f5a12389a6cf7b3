"""JSON Schema's keywords, bounded in time for any schema and body.

The keywords of `jsonschema` with quadratic time, or with `re`, are reimplemented here, with the
same meaning; all of them check the clock.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from jsonschema import Draft202012Validator
from jsonschema import validators as jsonschema_validators
from jsonschema._utils import (
    find_evaluated_item_indexes_by_schema,
    find_evaluated_property_keys_by_schema,
)
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from subscriptions.values.schema_patterns import schema_pattern

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]

_limit = threading.local()


class OutOfTimeError(Exception):
    """The check was aborted, or would take too long."""


@contextmanager
def bounded_time(seconds: float) -> Iterator[None]:
    """Abort checks of this thread after so many seconds of processor time."""
    _limit.until = time.thread_time() + seconds
    try:
        yield
    finally:
        _limit.until = None


def _check_time_limit() -> None:
    until = getattr(_limit, "until", None)
    if until is not None and time.thread_time() > until:
        raise OutOfTimeError


def _timed(keyword: _Keyword) -> _Keyword:
    # Not a generator: it would add a level to each level of the body.
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
        _check_time_limit()
        return keyword(validator, value, instance, schema) or ()

    return timed


def _is_found(pattern: str, text: str) -> bool:
    _check_time_limit()
    compiled = schema_pattern(pattern)
    # Compiling may have taken the time that was left.
    _check_time_limit()
    if len(text) > compiled.max_text_length:
        raise OutOfTimeError
    return compiled.is_found_in(text)


def _pattern(
    _validator: Any, pattern: str, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _is_found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if _is_found(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    extras = [name for name in instance if not _is_named(name, schema)]
    if isinstance(subschema, dict):
        for name in extras:
            yield from validator.descend(instance[name], subschema, path=name)
    elif not subschema and extras:
        yield ValidationError(f"Additional properties are not allowed: {_listed(extras)}")


def _is_named(name: str, schema: Mapping[str, Any]) -> bool:
    return name in schema.get("properties", {}) or any(
        _is_found(pattern, name) for pattern in schema.get("patternProperties", {})
    )


def _unique_items(
    _validator: Any, is_wanted: bool, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not is_wanted or not isinstance(instance, list):
        return
    seen: set[str] = set()
    for index, item in enumerate(instance):
        identity = json.dumps(_plain(item), sort_keys=True)
        if identity in seen:
            yield ValidationError(
                f"it has the same element twice: number {index}, from 0, came before"
            )
            return
        seen.add(identity)


def _unevaluated_items(
    validator: Any, _subschema: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        evaluated = set(find_evaluated_item_indexes_by_schema(validator, instance, schema))
        if left := [str(index) for index in range(len(instance)) if index not in evaluated]:
            yield ValidationError(f"Unevaluated items are not allowed: {_listed(left)}")


def _unevaluated_properties(
    validator: Any, subschema: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        evaluated = set(find_evaluated_property_keys_by_schema(validator, instance, schema))
        left = [
            name
            for name, value in instance.items()
            if name not in evaluated
            and any(True for _ in validator.descend(value, subschema, path=name))
        ]
        if left:
            yield ValidationError(f"Unevaluated properties are not allowed: {_listed(left)}")


def _plain(value: Any) -> Any:
    """Return the same value for equal values: 1.0 is 1, and true is not."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(map(repr, names[:10])) + more


BoundedValidator = cast(
    "type[Validator]",
    jsonschema_validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {
            name: _timed(keyword)
            for name, keyword in {
                **Draft202012Validator.VALIDATORS,
                "pattern": _pattern,
                "patternProperties": _pattern_properties,
                "additionalProperties": _additional_properties,
                "uniqueItems": _unique_items,
                "unevaluatedItems": _unevaluated_items,
                "unevaluatedProperties": _unevaluated_properties,
            }.items()
        },
    ),
)
