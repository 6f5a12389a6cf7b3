"""The page /api/docs/: the OpenAPI document for people, with a form that tries each call."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt

from config.api_schema import schema_document

# The order in which a newcomer needs them. A test insists that each tag is in one chapter.
CHAPTERS: Mapping[str, Sequence[str]] = {
    "Publish and fetch": ("events", "messages:batch", "callbacks", "replies", "mailboxes"),
    "Find": ("messages", "deliveries", "lanes", "url-health", "incidents"),
    "Set up": (
        "event-types",
        "publishers",
        "subscribers",
        "subscriptions",
        "filters",
        "policies",
        "common-scripts",
        "keys",
        "configuration",
    ),
    "Operate": ("resubmissions", "cancellations", "replays", "installation", "retention-runs"),
}
# HTML in a description is shown as text.
_MARKDOWN = MarkdownIt("commonmark", {"html": False})


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A parameter, or a field of an object: `description` is HTML, `place` where it goes."""

    name: str
    type: str
    object_name: str
    description: str
    is_required: bool
    place: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    status: str
    description: str
    object_name: str


@dataclass(frozen=True, slots=True)
class ReferenceCall:
    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: Sequence[ReferenceField]
    content_types: Sequence[str]
    body_name: str
    sample: str
    answers: Sequence[ReferenceAnswer]


@dataclass(frozen=True, slots=True)
class ReferenceObject:
    """An object or a set of values that calls take or return."""

    name: str
    description: str
    fields: Sequence[ReferenceField]


@require_safe
def api_reference(_: HttpRequest) -> HttpResponse:
    return HttpResponse(_page())


@lru_cache(maxsize=1)
def _page() -> str:
    return render_to_string(
        "api/docs.html",
        {
            "about": schema_document()["info"]["description"],
            "chapters": [
                (title, [(tag, list(_calls(tag))) for tag in tags])
                for title, tags in CHAPTERS.items()
            ],
            "objects": [_described(name, schema) for name, schema in _schemas().items()],
        },
    )


def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = schema_document()["components"]["schemas"]
    return found


def _calls(tag: str) -> Iterator[ReferenceCall]:
    for path, methods in schema_document()["paths"].items():
        for method, call in methods.items():
            if tag in call["tags"]:
                yield _call(method.upper(), path, call)


def _call(method: str, path: str, call: Mapping[str, Any]) -> ReferenceCall:
    content = call.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema", {})
    summary = call["summary"]
    # Most descriptions begin with the summary, as a sentence.
    description = call["description"].removeprefix(f"{summary}.")
    return ReferenceCall(
        id=call["operationId"],
        method=method,
        path=path,
        summary=_MARKDOWN.renderInline(summary),
        description=_html(description),
        parameters=[
            _field(
                parameter["name"],
                parameter["schema"],
                parameter,
                is_required=parameter.get("required", False),
            )
            for parameter in call.get("parameters", [])
        ],
        content_types=list(content),
        body_name=_name_of(body),
        sample=_json(_sample(body)) if content else "",
        answers=[
            ReferenceAnswer(status, answer["description"], _answered(answer))
            for status, answer in call["responses"].items()
            if status != "default"
        ],
    )


def _answered(answer: Mapping[str, Any]) -> str:
    schemas = [content.get("schema", {}) for content in answer.get("content", {}).values()]
    return _name_of(schemas[0]) if schemas else ""


def _described(name: str, schema: Mapping[str, Any]) -> ReferenceObject:
    required = schema.get("required", [])
    return ReferenceObject(
        name=name,
        description=_html(schema.get("description", "")),
        fields=[
            _field(field, part, part, is_required=field in required)
            for field, part in schema.get("properties", {}).items()
        ],
    )


def _field(
    name: str, schema: Mapping[str, Any], described: Mapping[str, Any], *, is_required: bool
) -> ReferenceField:
    return ReferenceField(
        name=name,
        type=_type(schema),
        object_name=_name_of(schema),
        description=_html(described.get("description", "")),
        is_required=is_required,
        place=described.get("in", ""),
    )


def _name_of(schema: Mapping[str, Any]) -> str:
    """Return the name of the object that the schema is, or has; empty if it has none."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return reference.rpartition("/")[2]
    inner = [schema.get("items"), *schema.get("allOf", ()), *schema.get("oneOf", ())]
    return next((name for part in inner if part and (name := _name_of(part))), "")


def _type(schema: Mapping[str, Any]) -> str:
    if schema.get("type") == "array":
        return "list of " + (_type(schema.get("items", {})) or "objects")
    words = [schema.get("format") or schema.get("type") or ""]
    if "enum" in schema:
        words = [" or ".join(str(value) for value in schema["enum"])]
    if schema.get("nullable"):
        words.append("or null")
    if schema.get("readOnly"):
        words.append("(read only)")
    return " ".join(word for word in words if word)


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = _name_of(schema) if schema.get("type") != "array" else ""
    return _schemas()[name] if name else schema


def _sample(schema: Mapping[str, Any]) -> Any:
    """Return a value with the fields that the call requires."""
    found = _resolved(schema)
    if "enum" in found:
        return found["enum"][0]
    kind = found.get("type")
    if kind == "object" or "properties" in found:
        properties = found.get("properties", {})
        return {name: _sample(properties.get(name, {})) for name in found.get("required", [])}
    simple: dict[str | None, Any] = {"array": [], "integer": 0, "number": 0, "boolean": False}
    return simple.get(kind, "")


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _html(text: str) -> str:
    html: str = _MARKDOWN.render(text.strip())
    return html
