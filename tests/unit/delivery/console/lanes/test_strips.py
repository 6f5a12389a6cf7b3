"""Strips and addresses that are made without templates: names are escaped, addresses are right."""

from datetime import UTC, datetime, timedelta

from django.urls import reverse

from delivery.console.lanes.strip_blocks import strip_blocks
from delivery.console.lanes.strips import Block, Strip
from delivery.console.shared.links import address
from delivery.models import Lane
from delivery.standing.bounded_counts import Bounded
from delivery.standing.vocabulary import Standing, State

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def block(id: int) -> Block:
    return Block(
        id=id,
        message_id=7,
        attempts=2,
        subscription_id=3,
        subscription="<b>",
        event='"&"',
        published_at=NOW - timedelta(minutes=5),
    )


def test_names_in_a_strip_are_escaped() -> None:
    strip = Strip(
        lane=Lane(),
        standing=Standing(state=State.STOPPED),
        waiting=Bounded(2, 10),
        blocks=[block(1), block(2)],
    )
    title = "msg_7 · &quot;&amp;&quot; · for &lt;b&gt; · published 5 min ago · 2 attempts"
    assert strip_blocks(strip, now=NOW) == (
        '<li><a class="inturn-block inturn-colour-3 inturn-head inturn-bad" '
        f'href="/admin/delivery/delivery/1/change/" title="{title}">msg_7</a></li>'
        '<li><a class="inturn-block inturn-colour-3" '
        f'href="/admin/delivery/delivery/2/change/" title="{title}">'
        '<span class="inturn-unseen">msg_7 for &lt;b&gt;</span></a></li>'
    )


def test_an_address_is_that_of_reverse() -> None:
    name = "admin:delivery_lane_skip"
    assert [address(name, 12, id) for id in (1, 2**62)] == [
        reverse(name, args=[12, id]) for id in (1, 2**62)
    ]
