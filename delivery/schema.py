"""Checking a body against its event type's JSON Schema."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry

from subscriptions.models import EventType

MAX_MESSAGE_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Violation:
    """Where a body breaks its schema, as a JSONPath such as `$.project.id`, and how."""

    path: str
    message: str


def first_violation(event_type: EventType, value: Any) -> Violation | None:
    """Return the most telling violation of the event type's schema, or None."""
    if event_type.json_schema is None:
        return None
    # Keyed by the schema itself, so that a change of it counts at once.
    validator = _validator(orjson.dumps(event_type.json_schema))
    error = best_match(validator.iter_errors(value))
    if error is None:
        return None
    return Violation(error.json_path, error.message[:MAX_MESSAGE_LENGTH])


@lru_cache(maxsize=1000)
def _validator(schema: bytes) -> Draft202012Validator:
    # An empty registry: a reference to another address must never make us fetch it.
    return Draft202012Validator(orjson.loads(schema), registry=Registry())
