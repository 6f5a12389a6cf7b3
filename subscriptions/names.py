"""Which names things may have: they stand in URLs, headers and logs."""

from django.core.validators import RegexValidator

MAX_NAME_LENGTH = 200

validate_name = RegexValidator(
    r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z",
    "Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.",
)
