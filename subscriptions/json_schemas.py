"""Which JSON Schemas an event type may carry: complete in themselves, and certain to come to an end."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REFERENCES = ("$ref", "$dynamicRef")
# Where a schema is applied to the same place of the message again: a circle of these never ends.
_SAME_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_PLACE = ("not", "if", "then", "else")

# What these hold is compared with messages, never applied to them.
_DATA = frozenset({"const", "default", "enum", "examples"})
# What these hold are schemas by name.
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})

Pointer = tuple[str | int, ...]


class JSONSchemaError(ValueError):
    """The schema cannot be used; the message says where and why."""


def check_json_schema(schema: Any) -> None:
    """Raise JSONSchemaError unless it is a Draft 2020-12 schema without remote, dangling or circular references."""
    if not isinstance(schema, Mapping):
        raise JSONSchemaError("A JSON Schema is an object here.")
    if schema.get("$schema", DIALECT) != DIALECT:
        raise JSONSchemaError(f"$schema: only {DIALECT} is known; leave $schema out or give that.")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise JSONSchemaError(f"{_path(tuple(error.absolute_path))}: {error.message[:300]}") from None
    _check_references(schema)


def _check_references(schema: Any) -> None:
    places = dict(_places(schema, ()))
    anchors = {
        part[keyword]: pointer
        for pointer, part in places.items()
        for keyword in ("$anchor", "$dynamicAnchor")
        if isinstance(part, Mapping) and isinstance(part.get(keyword), str)
    }
    leads_to = {pointer: _same_place(pointer, part, anchors, places) for pointer, part in places.items()}
    _refuse_circles(leads_to)


def _places(part: Any, pointer: Pointer, *, is_names: bool = False) -> Iterator[tuple[Pointer, Any]]:
    """Yield every schema within a schema; `is_names`: the keys of this part are names, not keywords."""
    if not is_names:
        yield pointer, part
    if isinstance(part, list):
        inner: Iterable[tuple[str | int, Any]] = enumerate(part)
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


def _same_place(
    pointer: Pointer, part: Any, anchors: Mapping[str, Pointer], places: Mapping[Pointer, Any]
) -> list[Pointer]:
    if not isinstance(part, Mapping):
        return []
    found: list[Pointer] = [(*pointer, keyword) for keyword in _SAME_PLACE if keyword in part]
    for keyword in _SAME_PLACE_LISTS:
        if isinstance(part.get(keyword), list):
            found += [(*pointer, keyword, index) for index in range(len(part[keyword]))]
    if isinstance(part.get("dependentSchemas"), Mapping):
        found += [(*pointer, "dependentSchemas", name) for name in part["dependentSchemas"]]
    for keyword in _REFERENCES:
        if isinstance(part.get(keyword), str):
            found.append(_target(part[keyword], pointer, anchors, places))
    return found


def _target(
    reference: str, pointer: Pointer, anchors: Mapping[str, Pointer], places: Mapping[Pointer, Any]
) -> Pointer:
    if not reference.startswith("#"):
        raise JSONSchemaError(
            f"{_path(pointer)}: {reference[:200]} is outside this schema; copy it into $defs."
        )
    if not reference.startswith("#/"):
        target = anchors.get(reference[1:]) if reference != "#" else ()
    else:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in reference[2:].split("/")]
        target = next((place for place in places if [str(step) for step in place] == steps), None)
    if target is None:
        raise JSONSchemaError(f"{_path(pointer)}: {reference[:200]} leads nowhere.")
    return target


def _refuse_circles(leads_to: Mapping[Pointer, list[Pointer]]) -> None:
    # Take away what leads nowhere until nothing is left, or only circles are.
    waiting = {pointer: set(targets) & set(leads_to) for pointer, targets in leads_to.items()}
    while ended := {pointer for pointer, targets in waiting.items() if not targets}:
        waiting = {pointer: targets - ended for pointer, targets in waiting.items() if pointer not in ended}
    if waiting:
        raise JSONSchemaError(f"{_path(min(waiting, key=len))}: it refers to itself without end.")


def _path(pointer: Pointer) -> str:
    return "#" + "".join(f"/{step}" for step in pointer)
