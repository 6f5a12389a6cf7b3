"""Checking a body against the event type's JSON Schema."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from referencing import Registry

from delivery.publishing.json_schema_keywords import BoundedValidator, OutOfTimeError, bounded_time
from subscriptions.models import EventType
from subscriptions.values.schema_patterns import PatternError

MAX_MESSAGE_LENGTH = 500
# The most telling of so many violations is reported; a large body may have hundreds of thousands.
MAX_VIOLATIONS = 100
# Processor time: other load of the machine is no fault of the body.
MAX_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Violation:
    """Where a body breaks the schema, as a JSONPath such as `$.project.id`, and how."""

    path: str
    message: str


def first_violation(event_type: EventType, value: Any) -> Violation | None:
    """Return the most telling of the first violations of the event type's schema, or None.

    A check of possibly longer than MAX_SECONDS is a violation, too.
    """
    if event_type.json_schema is None:
        return None
    # Keyed by the schema itself, so a change takes effect at once.
    validator = _validator(orjson.dumps(event_type.json_schema))
    try:
        with bounded_time(MAX_SECONDS):
            error = best_match(islice(validator.iter_errors(value), MAX_VIOLATIONS))
    except OutOfTimeError:
        words = (
            f"the check takes more than {MAX_SECONDS:g} s; send a smaller message, "
            "or ask an administrator for a simpler schema."
        )
        return Violation("$", words)
    except PatternError as unsupported:
        words = (
            f"the schema has a pattern that is no longer supported: {unsupported}. "
            "Ask an administrator to change it."
        )
        return Violation("$", words)
    if error is None:
        return None
    return Violation(error.json_path, error.message[:MAX_MESSAGE_LENGTH])


@lru_cache(maxsize=1000)
def _validator(schema: bytes) -> Validator:
    # An empty registry: a reference to another address must never make us fetch it.
    return BoundedValidator(orjson.loads(schema), registry=Registry())
