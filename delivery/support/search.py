"""Searching messages by what no index knows: texts in headers and bodies, and what became of their deliveries.

Publishing pays for no index of texts, so every message of the range is looked at, from the newest. The range is walked in
parts of ids, which grow while they are quick; a walk ends when a page is full, or when its time is up: what was found until
then is shown, and the next walk goes on from there.

What a part costs is not known before: the last one came from memory, the next may come from a disk, a hundred times as slow.
So the database ends a part that takes longer than half of what is left. It counts as not looked at, and a tenth of it
is tried: what the first try has read is in memory by then. Not before a single message is
too much is there no limit, and only until a walk has got on at all. So each walk gets on, and takes little longer than it may.
Where every message is read, those of a part are read ahead: along an index, a day from a disk took four times as long.

Ids are nearly in the order of publication: `SLACK` more of them are looked at on either side of a range of time.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime

from django.db.models import BooleanField, Exists, QuerySet
from django.db.models.expressions import RawSQL

from delivery.database.queries import TimeUpError, at_most, reading_ahead
from delivery.models import Delivery, Message
from delivery.models.delivery import ids_of_message

SECONDS = 0.85
SLACK = 10_000
FIRST_PART = 500
QUICK_SECONDS, SLOW_SECONDS = 0.05, 0.2
# A part has so long even when there is less left.
LEAST_SECONDS = 0.05

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

    @property
    def reads_all(self) -> bool:
        """Whether every message is read: nothing cheaper tells which are not worth it."""
        return self.reads_payloads and not self.status

    def among(self, rows: QuerySet[Message], first: int, last: int) -> QuerySet[Message]:
        """Return those of a range of ids that have it. The cheap comes first, for all is equal to the planner."""
        rows = rows.filter(pk__gte=first, pk__lte=last)
        if self.status:
            # The range once more: it does not follow for the planner.
            ids = ids_of_message(first)[0], ids_of_message(last)[1]
            of = Delivery.objects.of_outer_message().filter(status=self.status, pk__range=ids)
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
    upper, size, ends_at = last, FIRST_PART, time.monotonic() + seconds
    while upper >= first:
        lower, began = max(first, upper - size + 1), time.monotonic()
        limit = None if upper == last and size == 1 else max((ends_at - began) / 2, LEAST_SECONDS)
        among = search.among(rows, lower, upper).order_by("-pk")[: count - len(found)]
        part = _looked_at(among, limit, is_all_read=search.reads_all)
        if part is not None:
            found, upper = found + part, lower - 1
        if len(found) == count:
            return Walked(rows=found, reached=found[-1].pk, is_full=True)
        if first <= upper < last and time.monotonic() >= ends_at:
            return Walked(rows=found, reached=upper + 1, is_full=False)
        size = max(size // 10, 1) if part is None else _next_size(size, time.monotonic() - began)
    return Walked(rows=found, reached=None, is_full=False)


def _looked_at(rows: QuerySet[Message], seconds: float | None, *, is_all_read: bool) -> list[Message] | None:
    """Return what is in a part; None when that took longer than it may."""
    if seconds is None:
        return list(rows)
    try:
        with at_most(seconds), reading_ahead() if is_all_read else nullcontext():
            return list(rows)
    except TimeUpError:
        return None


def _next_size(size: int, took: float) -> int:
    if took < QUICK_SECONDS:
        return size * 2
    return max(size // 2, 1) if took > SLOW_SECONDS else size


def _first(rows: QuerySet[Message]) -> int | None:
    return rows.values_list("pk", flat=True).first()
