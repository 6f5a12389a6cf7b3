"""Which names things may have: they stand in URLs, headers and logs."""

import re

from django.core.validators import RegexValidator

MAX_NAME_LENGTH = 200

_NAME = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z")

validate_name = RegexValidator(
    _NAME,
    "Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.",
)


def is_name(text: str) -> bool:
    """Whether anything can have this name; what cannot need not be looked for."""
    return len(text) <= MAX_NAME_LENGTH and _NAME.match(text) is not None
