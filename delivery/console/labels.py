"""The coloured labels of statuses, states and outcomes."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

_GOOD, _BAD, _WARNING, _NEUTRAL, _OPEN = "good", "bad", "warning", "neutral", "open"

TONES = {
    "PENDING": _OPEN,
    "IN_FLIGHT": _OPEN,
    "DELIVERED": _GOOD,
    "REJECTED": _BAD,
    "3xxNOTSUPPORTED": _BAD,
    "FAILED": _BAD,
    "IN_DOUBT": _WARNING,
    "EXPIRED": _WARNING,
    "ACTIVE": _GOOD,
    "IDLE": _NEUTRAL,
    "SENDING": _OPEN,
    "BLOCKED": _BAD,
    "SUSPENDED": _WARNING,
    "SUCCESS": _GOOD,
    "LOST": _WARNING,
    "held": _WARNING,
}


def label(name: str, *, text: str | None = None, tone: str | None = None) -> SafeString:
    """Return a status exactly as it is stored, in the colour of what it means."""
    return format_html(
        '<span class="inturn-label inturn-{}">{}</span>', tone or TONES.get(name, _NEUTRAL), text or name
    )
