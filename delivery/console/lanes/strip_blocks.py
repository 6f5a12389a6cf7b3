"""The blocks of a strip as HTML.

Made here and not by a template: the overview has up to 320, and a template took more than twice as
long.
"""

from datetime import datetime
from html import escape

from django.utils.safestring import SafeString, mark_safe

from delivery.console.lanes.strips import Block, Strip
from delivery.console.shared.links import address
from subscriptions.values.counts import counted
from subscriptions.values.times import largest_unit


def strip_blocks(strip: Strip, *, now: datetime) -> SafeString:
    """Return an item for each block, with a link to the delivery; the head shows the message."""
    items = [
        _head(block, _title(block, now=now), is_stopped=strip.is_stopped)
        if number == 0
        else _next(block, _title(block, now=now))
        for number, block in enumerate(strip.blocks)
    ]
    # Names are escaped; all else is numbers and ids. format_html took twice as long.
    return mark_safe("".join(items))  # noqa: S308


def _head(block: Block, title: str, *, is_stopped: bool) -> str:
    look = "inturn-head inturn-bad" if is_stopped else "inturn-head"
    return (
        f'<li><a class="inturn-block inturn-colour-{block.colour} {look}" '
        f'href="{_address(block)}" title="{escape(title)}">'
        f"{block.message}</a></li>"
    )


def _next(block: Block, title: str) -> str:
    return (
        f'<li><a class="inturn-block inturn-colour-{block.colour}" '
        f'href="{_address(block)}" title="{escape(title)}">'
        f'<span class="inturn-unseen">{block.message} for {escape(block.subscription)}</span>'
        "</a></li>"
    )


def _address(block: Block) -> str:
    return address("admin:delivery_delivery_change", block.id)


def _title(block: Block, *, now: datetime) -> str:
    attempts = f" · {counted(block.attempts, 'attempt')}" if block.attempts else ""
    return (
        f"{block.message} · {block.event} · for {block.subscription} · "
        f"published {largest_unit(now - block.published_at)} ago{attempts}"
    )
