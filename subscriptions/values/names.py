"""Valid names: they appear in URLs, headers and logs."""

import re

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator

MAX_NAME_LENGTH = 200
# Event types published by Inturn itself: everybody may subscribe to them, nobody may publish them.
RESERVED_PREFIX = "Inturn."

# The event type of callback answers: each is sent to the message's CallbackURL, and nowhere else.
UNSUBSCRIBABLE = "Inturn.Callback"

_NAME = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z")

validate_name = RegexValidator(
    _NAME,
    "Use letters, digits, dots, hyphens and underscores; begin with a letter or digit.",
)


def is_name(text: str) -> bool:
    """Return whether this is a valid name; if not, no look-up is needed."""
    return len(text) <= MAX_NAME_LENGTH and _NAME.match(text) is not None


def is_reserved(name: str) -> bool:
    return name.startswith(RESERVED_PREFIX)


def refusal_of_reserved(name: str, *, stored: str) -> str:
    """Return why nobody may choose this name; empty if they may, or it is the stored name."""
    if not is_reserved(name) or name == stored:
        return ""
    return f"Names that begin with {RESERVED_PREFIX} are Inturn's own; choose another name."


def validate_subscribable(event_type: str) -> None:
    if event_type == UNSUBSCRIBABLE:
        raise ValidationError(
            f"{event_type} cannot be subscribed to: each answer goes to "
            "the CallbackURL of its message."
        )
