"""Parts of list cells: coloured labels of statuses and outcomes, second lines, durations."""

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
    "HELD": _WARNING,
    "SHADOW": _NEUTRAL,
    "IDLE": _NEUTRAL,
    "SENDING": _OPEN,
    "BLOCKED": _BAD,
    "SUSPENDED": _WARNING,
    "DOWN": _BAD,
    "ENABLED": _GOOD,
    "DISABLED": _WARNING,
    "FROZEN": _BAD,
    "SUCCESS": _GOOD,
    "LOST": _WARNING,
    "ACKNOWLEDGED": _GOOD,
    "RELEASED": _NEUTRAL,
    "UNACKNOWLEDGED": _WARNING,
    "held": _WARNING,
    "CRITICAL": _BAD,
    "WARNING": _WARNING,
    "WAITING": _OPEN,
    "STOPPED": _BAD,
    "SLOW": _WARNING,
    "MOVING": _OPEN,
    "ANSWERED": _GOOD,
}


def label(name: str, *, text: str | None = None, tone: str | None = None) -> SafeString:
    """Return a status exactly as stored, in the colour of its meaning."""
    return format_html(
        '<span class="inturn-label inturn-{}">{}</span>',
        tone or TONES.get(name, _NEUTRAL),
        text or name,
    )


def two_lines(first: str, second: str) -> SafeString:
    """Return a cell with a second line of detail in small type."""
    return format_html(
        '<span class="inturn-lines">{}<span class="inturn-second">{}</span></span>', first, second
    )


def milliseconds(number: int | None) -> str:
    """Return a duration in the most readable unit: `120 ms`, `1.5 s`; `–` for None."""
    if number is None:
        return "–"
    return f"{number} ms" if number < 1000 else f"{number / 1000:,.1f} s"
