"""Validation of an event type's JSON Schema: self-contained, and without endless recursion."""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias
from urllib.parse import unquote

import orjson
from django.core.exceptions import ValidationError
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from subscriptions.values.schema_patterns import PatternError, schema_pattern

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REFERENCES = ("$ref", "$dynamicRef")
# Keywords applying a schema to the same value of the message: a cycle of these never ends.
_SAME_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_PLACE = ("not", "if", "then", "else")

# Their content is compared with messages, never applied as a schema.
_DATA = frozenset({"const", "default", "enum", "examples"})
# Their content maps names to schemas.
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})

Pointer: TypeAlias = tuple[str, ...]


class JSONSchemaError(ValueError):
    """The schema cannot be used; the message says where and why."""


def check_json_schema(schema: Any) -> None:
    """Raise JSONSchemaError unless this is a schema of Draft 2020-12 applicable by publishing.

    It must have no remote, dangling or circular references.
    """
    if not isinstance(schema, Mapping):
        raise JSONSchemaError("A JSON Schema is an object here.")
    if schema.get("$schema", DIALECT) != DIALECT:
        raise JSONSchemaError(f"$schema: only {DIALECT} is known; leave $schema out or give that.")
    try:
        # Publishing caches compiled schemas by this serialization.
        orjson.dumps(schema)
    except TypeError:
        raise JSONSchemaError("It holds a number over 64 bits, or is nested too deep.") from None
    try:
        Draft202012Validator.check_schema(schema)
    except RecursionError:
        raise JSONSchemaError("The schema is nested too deep.") from None
    except SchemaError as error:
        raise JSONSchemaError(
            f"{_path(tuple(str(step) for step in error.absolute_path))}: {error.message[:300]}"
        ) from None
    _check_references(schema)
    _check_patterns(schema)


def validate_json_schema(schema: Any) -> None:
    try:
        check_json_schema(schema)
    except JSONSchemaError as error:
        raise ValidationError(str(error)) from None


def _check_patterns(schema: Any) -> None:
    """Refuse patterns not searchable in linear time."""
    parts = [(pointer, part) for pointer, part in _places(schema, ()) if isinstance(part, Mapping)]
    if _has(parts, "patternProperties") and _has(parts, "unevaluatedProperties"):
        raise JSONSchemaError(
            "#: patternProperties together with unevaluatedProperties is not supported; "
            "use additionalProperties."
        )
    for pointer, part in parts:
        for pattern in [
            *part.get("patternProperties", ()),
            *([part["pattern"]] if "pattern" in part else []),
        ]:
            try:
                schema_pattern(pattern)
            except PatternError as error:
                raise JSONSchemaError(
                    f"{_path(pointer)}: the pattern {pattern[:200]!r}: {error}."
                ) from None


def _has(parts: Iterable[tuple[Pointer, Mapping[str, Any]]], keyword: str) -> bool:
    return any(keyword in part for _, part in parts)


def _check_references(schema: Any) -> None:
    references = _References(dict(_places(schema, ())))
    try:
        TopologicalSorter(references.graph()).prepare()
    except CycleError as error:
        circle: list[Pointer] = error.args[1]
        raise JSONSchemaError(
            f"{_path(min(circle, key=len))}: it refers to itself without end."
        ) from None


class _References:
    """The references among the schemas in a schema for the same value of a message."""

    def __init__(self, places: Mapping[Pointer, Any]) -> None:
        self._places = places
        self._anchors = {
            part[keyword]: pointer
            for pointer, part in places.items()
            for keyword in ("$anchor", "$dynamicAnchor")
            if isinstance(part, Mapping) and isinstance(part.get(keyword), str)
        }

    def graph(self) -> dict[Pointer, list[Pointer]]:
        return {
            pointer: [*_same_place(pointer, part), *self._targets(pointer, part)]
            for pointer, part in self._places.items()
            if isinstance(part, Mapping)
        }

    def _targets(self, pointer: Pointer, part: Mapping[str, Any]) -> list[Pointer]:
        written = [part[keyword] for keyword in _REFERENCES if isinstance(part.get(keyword), str)]
        return [self._target(reference, at=pointer) for reference in written]

    def _target(self, reference: str, *, at: Pointer) -> Pointer:
        if not reference.startswith("#"):
            raise JSONSchemaError(
                f"{_path(at)}: {reference[:200]} is outside this schema; copy it into $defs."
            )
        target = self._anchors.get(reference[1:], _pointer(reference))
        if target is None or target not in self._places:
            raise JSONSchemaError(f"{_path(at)}: {reference[:200]} leads nowhere.")
        return target


def _pointer(reference: str) -> Pointer | None:
    """Parse the JSON pointer (RFC 6901) in a fragment; None if it is the name of an anchor."""
    beginning, *steps = unquote(reference[1:]).split("/")
    return (
        None if beginning else tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)
    )


def _same_place(pointer: Pointer, part: Mapping[str, Any]) -> list[Pointer]:
    pointers: list[Pointer] = [(*pointer, keyword) for keyword in _SAME_PLACE if keyword in part]
    for keyword in _SAME_PLACE_LISTS:
        if isinstance(part.get(keyword), list):
            pointers += [(*pointer, keyword, str(index)) for index in range(len(part[keyword]))]
    if isinstance(part.get("dependentSchemas"), Mapping):
        pointers += [(*pointer, "dependentSchemas", name) for name in part["dependentSchemas"]]
    return pointers


def _places(
    part: Any, pointer: Pointer, *, is_names: bool = False
) -> Iterator[tuple[Pointer, Any]]:
    """Yield every schema within a schema.

    `is_names`: the keys of this part are names, not keywords.
    """
    if not is_names:
        yield pointer, part
    if isinstance(part, list):
        inner: Iterable[tuple[str, Any]] = ((str(index), value) for index, value in enumerate(part))
    elif isinstance(part, Mapping):
        if pointer and not is_names and "$id" in part:
            raise JSONSchemaError(
                f"{_path(pointer)}: an $id inside a schema is not supported; use $defs and #/…"
            )
        inner = [(name, value) for name, value in part.items() if is_names or name not in _DATA]
    else:
        return
    for step, value in inner:
        yield from _places(value, (*pointer, step), is_names=not is_names and step in _NAMED)


def _path(pointer: Pointer) -> str:
    return "#" + "".join(f"/{step}" for step in pointer)
