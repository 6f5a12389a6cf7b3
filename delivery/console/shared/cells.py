"""Cells of lists and fields of pages with more than a plain value."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from subscriptions.models import EventType, Subscription


class ForwardedNames:
    """Shows readers the names of forwarded headers.

    The field's own display has inline styles, which the console's CSP blocks.
    """

    @admin.display(description="forward headers")
    def forwarded_names(self, row: Subscription | EventType) -> str:
        return ", ".join(row.forward_headers) or "none"


def two_lines_of(text: str) -> SafeString | None:
    """Return a text cut to two lines by CSS, complete on hover; None for an empty text."""
    if not text:
        return None
    return format_html('<span class="inturn-reason-cell" title="{}">{}</span>', text, text)


def lines(first: str, second: str) -> SafeString:
    """Return a cell with a small second line for the conditions, complete on hover.

    If `second` is empty, there is a single line.
    """
    code = (
        format_html('<code class="inturn-second" title="{}">{}</code>', second, second)
        if second
        else ""
    )
    return format_html('<span class="inturn-lines">{}{}</span>', first, code)
