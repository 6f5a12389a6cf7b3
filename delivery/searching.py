"""Searching messages by what no index knows: texts in headers and bodies, and what became of their deliveries.

Publishing pays for no index of texts, so every message of the range is looked at, from the newest. The range is walked in
parts of ids, which grow while they are quick; a walk ends when a page is full, or when its time is up after any part:
what was found until then is shown, and the next walk goes on from there. So it always gets on, however large
the bodies are, and never takes much longer than it may.

Ids are nearly in the order of publication: `SLACK` more of them are looked at on either side of a range of time.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from delivery.models import Delivery, Message

SECONDS = 0.85
SLACK = 10_000
FIRST_PART = 500
QUICK_SECONDS, SLOW_SECONDS = 0.05, 0.2

_HEADER_HOLDS = (
    "EXISTS (SELECT FROM jsonb_each_text(delivery_message.headers) AS header"
    " WHERE strpos(lower(header.key || ': ' || header.value), lower(%s)) > 0)"
)
_BODY_HOLDS = "position(%s IN delivery_message.body) > 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for; what is empty is not.

    Text within one header written `name: value`, in any case; text within the body, exactly so; a delivery's status.
    """

    header: str = ""
    body: str = ""
    status: str = ""

    def __bool__(self) -> bool:
        return bool(self.header or self.body or self.status)

    @property
    def reads_payloads(self) -> bool:
        return bool(self.header or self.body)

    def among(self, rows: QuerySet[Message], first: int, last: int) -> QuerySet[Message]:
        """Return those of a range of ids that have it. The cheap comes first, for all is equal to the planner."""
        rows = rows.filter(pk__gte=first, pk__lte=last)
        if self.status:
            # The range once more: it does not follow for the planner.
            of = Delivery.objects.filter(
                message=OuterRef("pk"), status=self.status, message__gte=first, message__lte=last
            )
            rows = rows.filter(Exists(of))
        return with_texts(rows, header=self.header, body=self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk found, the newest first; it looked at nothing below `reached`, which is None when nothing is left."""

    rows: Sequence[Message]
    reached: int | None
    is_full: bool


def with_texts(rows: QuerySet[Message], *, header: str = "", body: str = "") -> QuerySet[Message]:
    # Bytes, which are given once; the database would make them of the text anew for each row.
    for text, holds in ((header, _HEADER_HOLDS), (body.encode(), _BODY_HOLDS)):
        if text:
            rows = rows.filter(RawSQL(holds, [text], output_field=BooleanField()))  # noqa: S611 - our SQL
    return rows


def ids_between(since: datetime | None, until: datetime | None) -> tuple[int, int]:
    """Return the first and the last id that a message of a time may have; the first is the greater when there is none."""
    newest = _first(Message.objects.order_by("-pk")) or 0
    first = 0
    if since is not None:
        found = _first(Message.objects.filter(published_at__gte=since).order_by("published_at"))
        first = newest + 1 if found is None else max(found - SLACK, 0)
    if until is None:
        return first, newest
    found = _first(Message.objects.filter(published_at__gte=until).order_by("published_at"))
    return first, newest if found is None else min(found + SLACK, newest)


def walk(
    rows: QuerySet[Message], search: Search, *, first: int, last: int, count: int, seconds: float = SECONDS
) -> Walked:
    """Look for messages from the last id to the first, until there are so many, or the time is up."""
    found: list[Message] = []
    ends_at = time.monotonic() + seconds
    for lower, upper in _parts(first, last):
        found += search.among(rows, lower, upper).order_by("-pk")[: count - len(found)]
        if len(found) == count:
            return Walked(rows=found, reached=found[-1].pk, is_full=True)
        if lower > first and time.monotonic() >= ends_at:
            return Walked(rows=found, reached=lower, is_full=False)
    return Walked(rows=found, reached=None, is_full=False)


def _parts(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of ids from the last to the first; each is larger than the one before if that was quick."""
    size, upper = FIRST_PART, last
    while upper >= first:
        lower = max(first, upper - size + 1)
        began = time.monotonic()
        yield lower, upper
        took = time.monotonic() - began
        size = size * 2 if took < QUICK_SECONDS else max(size // 2, 1) if took > SLOW_SECONDS else size
        upper = lower - 1


def _first(rows: QuerySet[Message]) -> int | None:
    return rows.values_list("pk", flat=True).first()
