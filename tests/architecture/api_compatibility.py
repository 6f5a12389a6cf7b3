"""Comparison of two OpenAPI documents: changes after which an existing client fails.

A client may send less than is allowed and ignore parts of an answer. So a request must not need
more than before, and an answer must not have less. New values of an enumeration in an answer are no
break: the guide warns clients to expect them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Node = Mapping[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
# A value is allowed if it is between these; a request's limits must not become narrower.
LOWEST = ("minimum", "minLength", "minItems")
HIGHEST = ("maximum", "maxLength", "maxItems")


class Direction(Enum):
    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Documents:
    """The document of the last version, and the current one."""

    old: Node
    new: Node

    def breaks(self) -> Iterator[str]:
        """Yield each change that breaks clients, as a place and a reason."""
        for path, operations in self.old["paths"].items():
            for method in METHODS:
                if method not in operations:
                    continue
                place = f"{method.upper()} {path}"
                current = self.new["paths"].get(path, {}).get(method)
                if current is None:
                    yield f"{place}: the operation is gone"
                else:
                    yield from self._operation(place, operations[method], current)

    def _operation(self, place: str, old: Node, new: Node) -> Iterator[str]:
        yield from self._parameters(place, old, new)
        sent_old, sent_new = old.get("requestBody", {}), new.get("requestBody", {})
        if sent_new.get("required") and not sent_old.get("required"):
            yield f"{place}: a body became required"
        yield from self._contents(f"{place} request", sent_old, sent_new, Direction.REQUEST)
        for status, answer in old.get("responses", {}).items():
            current = new.get("responses", {}).get(status)
            if current is None:
                yield f"{place}: the answer {status} is gone"
            else:
                yield from self._contents(f"{place} {status}", answer, current, Direction.ANSWER)

    def _parameters(self, place: str, old: Node, new: Node) -> Iterator[str]:
        known, current = _parameters_of(old), _parameters_of(new)
        for (kind, name), parameter in known.items():
            here = f"{place} {kind} {name}"
            if (kind, name) not in current:
                yield f"{here}: the parameter is gone"
            else:
                found = current[kind, name]
                yield from self._schema(
                    here, parameter["schema"], found["schema"], Direction.REQUEST
                )
        for (kind, name), parameter in current.items():
            before = known.get((kind, name), {})
            if parameter.get("required") and not before.get("required"):
                yield f"{place} {kind} {name}: the parameter became required"

    def _contents(self, place: str, old: Node, new: Node, direction: Direction) -> Iterator[str]:
        for content_type, content in old.get("content", {}).items():
            current = new.get("content", {}).get(content_type)
            if current is None:
                yield f"{place}: {content_type} is gone"
            else:
                yield from self._schema(
                    place, content.get("schema", {}), current.get("schema", {}), direction
                )

    def _schema(
        self, place: str, old: Node, new: Node, direction: Direction, above: tuple[str, ...] = ()
    ) -> Iterator[str]:
        if (name := old.get("$ref", "")) in above:  # A schema may contain itself.
            return
        above = (*above, name) if name else above
        old, new = _resolved(self.old, old), _resolved(self.new, new)
        if old.get("type") != new.get("type"):
            yield f"{place}: {old.get('type')} became {new.get('type')}"
            return
        yield from _values(place, old, new, direction)
        yield from self._fields(place, old, new, direction, above)
        if "items" in old and "items" in new:
            yield from self._schema(f"{place}[]", old["items"], new["items"], direction, above)

    def _fields(
        self, place: str, old: Node, new: Node, direction: Direction, above: tuple[str, ...]
    ) -> Iterator[str]:
        fields, current = old.get("properties", {}), new.get("properties", {})
        for name, field in fields.items():
            if name not in current:
                yield f"{place} {name}: the field is gone"
            else:
                yield from self._schema(f"{place} {name}", field, current[name], direction, above)
        needed, before = set(new.get("required", ())), set(old.get("required", ()))
        if direction is Direction.REQUEST:
            yield from (
                f"{place} {name}: the field became required" for name in sorted(needed - before)
            )
        else:
            left_out = sorted((before - needed) & current.keys())
            yield from (
                f"{place} {name}: the field is no longer in every answer" for name in left_out
            )


def _values(place: str, old: Node, new: Node, direction: Direction) -> Iterator[str]:
    """Compare the allowed values of two schemas of one type."""
    if direction is Direction.ANSWER:
        if new.get("nullable") and not old.get("nullable"):
            yield f"{place}: it may be null now"
        return
    if old.get("nullable") and not new.get("nullable"):
        yield f"{place}: null is refused now"
    if "enum" in new:
        allowed = old.get("enum")
        if allowed is None:
            yield f"{place}: only some values are allowed now"
        yield from (
            f"{place}: {value!r} is refused now"
            for value in allowed or ()
            if value not in new["enum"]
        )
    for name in LOWEST:
        if new.get(name, float("-inf")) > old.get(name, float("-inf")):
            yield f"{place}: {name} rose to {new[name]}"
    for name in HIGHEST:
        if new.get(name, float("inf")) < old.get(name, float("inf")):
            yield f"{place}: {name} fell to {new[name]}"


def _parameters_of(operation: Node) -> dict[tuple[str, str], Node]:
    return {(one["in"], one["name"]): one for one in operation.get("parameters", ())}


def _resolved(document: Node, schema: Node) -> Node:
    """Return the schema with references followed and the parts of `allOf` joined."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    parts = [_resolved(document, part) for part in schema.get("allOf", ())]
    joined = {name: value for part in parts for name, value in part.items()}
    return joined | {name: value for name, value in schema.items() if name != "allOf"}
