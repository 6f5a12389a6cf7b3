"""JSON that PostgreSQL's jsonb can store."""

import math
import re
from typing import Any

from django.core.exceptions import ValidationError

_UNSTORABLE = re.compile(r"[\0\ud800-\udfff]")


def validate_storable(value: Any) -> None:
    """Refuse a parsed value that jsonb cannot hold; the parser has bounded its depth."""
    if not _is_storable(value):
        raise ValidationError(
            "It contains a value that the database cannot store: "
            "a NUL character, half a surrogate pair, or too large a number."
        )


def _is_storable(value: Any) -> bool:
    match value:
        case dict():
            return all(_is_storable(name) and _is_storable(inner) for name, inner in value.items())
        case list():
            return all(_is_storable(inner) for inner in value)
        case str():
            return not _UNSTORABLE.search(value)
        case float():
            return math.isfinite(value)
    return True
