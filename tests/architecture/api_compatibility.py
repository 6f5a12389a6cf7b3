"""Comparison of two OpenAPI documents: changes after which an existing client fails.

A client may send less than is allowed and ignore parts of an answer. So a request must not need
more than before, and an answer must not have less. New values of an enumeration in an answer are no
break, as the guide warns clients to expect them, and nor are other texts than its pattern or length
allowed. Whether another pattern accepts less cannot be decided, so it counts as if it did.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Node = Mapping[str, Any]
# The security schemes that let a client in together, each with its scopes.
Way = Mapping[str, Sequence[str]]

METHODS = ("get", "post", "put", "patch", "delete")
# A value is allowed if it is between these; a request's limits must not become narrower.
LOWEST = ("minimum", "minLength", "minItems")
HIGHEST = ("maximum", "maxLength", "maxItems")
# Texts that a request must satisfy.
EXACT = ("pattern", "format")
ALTERNATIVES = ("oneOf", "anyOf")


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
        kinds = self.new.get("components", {}).get("securitySchemes", {})
        for name, kind in self.old.get("components", {}).get("securitySchemes", {}).items():
            if name in kinds and kinds[name] != kind:
                yield f"the security scheme {name} became another"
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
        yield from self._security(place, old, new)
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

    def _security(self, place: str, old: Node, new: Node) -> Iterator[str]:
        """Yield each way to be let in that is not enough any more."""
        ways = _ways_in(self.new, new)
        for before in _ways_in(self.old, old):
            if not any(_is_enough(before, way) for way in ways):
                needed = " or ".join(map(_words, ways))
                yield f"{place}: the security {_words(before)} became {needed}"

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
        if not _has_alternatives(old) and not _has_alternatives(new):
            yield from self._plain(place, old, new, direction, above)
            return
        if _has_alternatives(old) and _has_alternatives(new):
            found = list(self._plain(place, old, new, direction, above))
            if found:
                # No alternative would fit: these say more.
                yield from found
                return
        yield from self._alternatives(place, old, new, direction, above)

    def _alternatives(
        self, place: str, old: Node, new: Node, direction: Direction, above: tuple[str, ...]
    ) -> Iterator[str]:
        """Yield each alternative of a request that is gone, and each new one of an answer."""

        def fits(before: Node, after: Node) -> bool:
            return not any(self._schema(place, before, after, direction, above))

        before, after = _alternatives_of(self.old, old), _alternatives_of(self.new, new)
        if direction is Direction.REQUEST:
            for number, previous in enumerate(before, start=1):
                if not any(fits(previous, other) for other in after):
                    yield f"{place}: alternative {number} of {len(before)} is refused now"
        else:
            for number, other in enumerate(after, start=1):
                if not any(fits(previous, other) for previous in before):
                    yield f"{place}: alternative {number} of {len(after)} is new"

    def _plain(
        self, place: str, old: Node, new: Node, direction: Direction, above: tuple[str, ...]
    ) -> Iterator[str]:
        """Compare two schemas whatever their alternatives."""
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
    if direction is Direction.REQUEST:
        yield from _accepted(place, old, new)
        return
    if new.get("nullable") and not old.get("nullable"):
        yield f"{place}: it may be null now"
    if "format" in old and new.get("format") != old["format"]:
        yield f"{place}: the format {old['format']} became {new.get('format')}"


def _accepted(place: str, old: Node, new: Node) -> Iterator[str]:
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
    for name in EXACT:
        if name in new and new[name] != old.get(name):
            yield f"{place}: the {name} {old.get(name)} became {new[name]}"


def _parameters_of(operation: Node) -> dict[tuple[str, str], Node]:
    return {
        (parameter["in"], parameter["name"]): parameter
        for parameter in operation.get("parameters", ())
    }


def _ways_in(document: Node, operation: Node) -> Sequence[Way]:
    """Return the alternatives that let a client in; an empty one lets everybody in."""
    return operation.get("security", document.get("security")) or [{}]


def _is_enough(given: Way, needed: Way) -> bool:
    return all(name in given and set(needed[name]) <= set(given[name]) for name in needed)


def _words(way: Way) -> str:
    return " and ".join(f"{name} {' '.join(way[name])}".strip() for name in way) or "none"


def _has_alternatives(schema: Node) -> bool:
    return any(name in schema for name in ALTERNATIVES)


def _alternatives_of(document: Node, schema: Node) -> Sequence[Node]:
    """Return the alternatives, each with what the schema says of all; itself if it has none."""
    common = {name: value for name, value in schema.items() if name not in ALTERNATIVES}
    found: list[Node] = []
    for alternative in (part for name in ALTERNATIVES for part in schema.get(name, ())):
        only = _resolved(document, alternative)
        joined = {
            "required": [*common.get("required", ()), *only.get("required", ())],
            "properties": {**common.get("properties", {}), **only.get("properties", {})},
        }
        found.append({**common, **only, **joined})
    return found or [schema]


def _resolved(document: Node, schema: Node) -> Node:
    """Return the schema with references followed and the parts of `allOf` joined."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    parts = [_resolved(document, part) for part in schema.get("allOf", ())]
    joined = {name: value for part in parts for name, value in part.items()}
    return joined | {name: value for name, value in schema.items() if name != "allOf"}
