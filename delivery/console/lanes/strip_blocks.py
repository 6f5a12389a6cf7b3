"""The blocks of a strip as HTML.

Made here and not by a template: the overview has up to 320, and a template took more than twice as
long.
"""

from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from delivery.console.lanes.strips import Block, Strip
from subscriptions.admin.shared.times import roughly
from subscriptions.values.counts import counted

_HEAD = '<li><a class="inturn-block inturn-colour-{} {}" href="{}" title="{}">{}</a></li>'
_NEXT = (
    '<li><a class="inturn-block inturn-colour-{}" href="{}" title="{}">'
    '<span class="inturn-unseen">{} for {}</span></a></li>'
)


def strip_blocks(strip: Strip, *, now: datetime) -> SafeString:
    """Return an item for each block, with a link to its delivery; the head shows its message."""
    # Resolved once: for each block it took half of the time.
    address = reverse("admin:delivery_delivery_change", args=["ID"])
    head = "inturn-head inturn-bad" if strip.is_stopped else "inturn-head"
    cells = [
        (block, address.replace("ID", str(block.id)), _title(block, now=now))
        for block in strip.blocks
    ]
    first = ((block.colour, head, link, title, block.message) for block, link, title in cells[:1])
    following = (
        (block.colour, link, title, block.message, block.subscription)
        for block, link, title in cells[1:]
    )
    return format_html_join("", _HEAD, first) + format_html_join("", _NEXT, following)


def _title(block: Block, *, now: datetime) -> str:
    attempts = f" · {counted(block.attempts, 'attempt')}" if block.attempts else ""
    return (
        f"{block.message} · {block.event} · for {block.subscription} · "
        f"published {roughly(now - block.published_at)} ago{attempts}"
    )
