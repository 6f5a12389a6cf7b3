"""Cells of lists that hold more than a line."""

from django.utils.html import format_html
from django.utils.safestring import SafeString


def two_lines_of(text: str) -> SafeString | None:
    """Return as much of a text as two lines hold, all of it on hover; None for none."""
    if not text:
        return None
    return format_html('<span class="inturn-reason-cell" title="{}">{}</span>', text, text)
