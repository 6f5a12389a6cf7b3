"""Searching messages without an index: by texts in headers and bodies, and by deliveries' status.

An index of texts would make publishing slower, so the search reads every message of a range, from
the newest. It walks the range in parts of ids, which grow while they are fast. A walk ends when a
page is full or the time is up: the matches so far are shown, and the next walk continues from
there.

The cost of a part is unknown: the last part was in memory, the next may come from a disk, a hundred
times as slow. So the database ends a part after half of the remaining time. This part counts as not
read, and a tenth of it is tried next: the first try has brought it into memory. Only a part of a
single message has no limit, and only before a walk has made progress. So each walk makes progress,
and takes little longer than the time.

The messages of a few deliveries with a status or of a subscription are found by the deliveries'
indexes, and only these are walked. Those of a subscriber, without a text, are found by a single
statement along the subscriptions' index, from the newest delivery of each.

If every message is read, those of a part are read ahead: along an index, a day from a disk took
four times as long. Ids are nearly in the order of publication, so `SLACK` more of them are read on
either side of a time range.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import BooleanField, Exists, QuerySet
from django.db.models.expressions import RawSQL

from delivery.database import queries
from delivery.database.queries import TimeUpError, preferring_bitmap_scans, statement_time_limit
from delivery.models import Delivery, Message, Status
from delivery.models.delivery import DeliveryQuerySet, ids_of_message
from delivery.models.published import first_ids_of_imports, limits_from
from delivery.support.written_texts import ways_to_write

SECONDS = 0.85
SLACK = 10_000
FIRST_PART = 500
# As many deliveries are found by an index in some milliseconds.
FEW = 10_000
# With more, looking up the newest deliveries of each takes longer than walking the messages.
FEW_SUBSCRIPTIONS = 500
QUICK_SECONDS, SLOW_SECONDS = 0.05, 0.2
# The minimum for a part, even if less time remains.
LEAST_SECONDS = 0.05

_HEADER_HOLDS = (
    "EXISTS (SELECT FROM jsonb_each_text(delivery_message.headers) AS header"
    " WHERE strpos(lower(header.key || ': ' || header.value), lower(%s)) > 0)"
)
_BODY_HOLDS = "position(%s IN delivery_message.body) > 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The conditions of a search; empty criteria do not apply.

    `header`: text within a header written as `name: value`, case-insensitive; `body`: text within
    the body, case-sensitive, however JSON escapes it; `statuses` and `subscriptions` (ids): those
    of the same delivery.
    """

    header: str = ""
    body: str = ""
    statuses: tuple[str, ...] = ()
    subscriptions: tuple[int, ...] | None = None

    def __bool__(self) -> bool:
        return self.reads_payloads or self.reads_deliveries

    @property
    def reads_payloads(self) -> bool:
        return bool(self.header or self.body)

    @property
    def reads_deliveries(self) -> bool:
        return bool(self.statuses) or self.subscriptions is not None

    @property
    def reads_all(self) -> bool:
        """Return whether every message is read, for lack of a cheaper condition."""
        return self.reads_payloads and not self.reads_deliveries

    @property
    def follows_subscriptions(self) -> bool:
        """Return whether the matches are the messages of a few subscriptions' deliveries."""
        named = self.subscriptions
        return named is not None and len(named) <= FEW_SUBSCRIPTIONS and not self.reads_payloads

    @property
    def without_deliveries(self) -> "Search":
        return replace(self, statuses=(), subscriptions=None)

    def deliveries(self, rows: DeliveryQuerySet, first: int, last: int) -> DeliveryQuerySet:
        """Keep the matching deliveries of the messages in a range of ids."""
        # Repeated for deliveries, because the planner does not derive it.
        rows = rows.filter(pk__range=(ids_of_message(first)[0], ids_of_message(last)[1]))
        if self.statuses:
            rows = rows.filter(status__in=self.statuses)
        if self.subscriptions is not None:
            rows = rows.filter(subscription__in=self.subscriptions)
        return rows

    def among(self, rows: QuerySet[Message], first: int, last: int) -> QuerySet[Message]:
        """Return the matches in a range of ids.

        Cheap conditions come first, because the planner does not order them.
        """
        rows = rows.filter(pk__gte=first, pk__lte=last)
        if self.reads_deliveries:
            of = self.deliveries(Delivery.objects.of_outer_message(), first, last)
            rows = rows.filter(Exists(of))
        return with_texts(rows, header=self.header, body=self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """The matches of a walk, newest first.

    Nothing below `reached` was read; it is None if nothing is left.
    """

    rows: Sequence[Message]
    reached: int | None
    is_full: bool


def with_texts(rows: QuerySet[Message], *, header: str = "", body: str = "") -> QuerySet[Message]:
    """Keep the messages with the texts; a text of the body may be written in several ways."""
    if header:
        # The SQL is ours, the text a parameter.
        held = RawSQL(_HEADER_HOLDS, [header], output_field=BooleanField())  # noqa: S611
        rows = rows.filter(held)
    if body:
        # As bytes, so the database need not convert the body of each row.
        ways = ways_to_write(body)
        holds = f"({' OR '.join([_BODY_HOLDS] * len(ways))})"
        held = RawSQL(holds, ways, output_field=BooleanField())  # noqa: S611
        rows = rows.filter(held)
    return rows


def ids_between(since: datetime | None, until: datetime | None) -> tuple[int, int]:
    """Return the first and last possible id of messages of a time range.

    If there are none, the first is the greater.
    """
    newest = _first(Message.objects.order_by("-pk")) or 0
    first = 0
    if since is not None:
        id = _first(Message.objects.filter(published_at__gte=since).order_by("published_at"))
        first = newest + 1 if id is None else max(id - SLACK, 0)
        first = min(first, first_ids_of_imports(since).first() or first)
    if until is None:
        return first, newest
    id = limits_from(until).first()
    return first, newest if id is None else min(id + SLACK, newest)


def walk_messages(
    rows: QuerySet[Message],
    search: Search,
    *,
    first: int,
    last: int,
    count: int,
    seconds: float = SECONDS,
) -> Walked:
    """Search messages from the last id to the first, until `count` are found or the time is up."""
    ends_at = time.monotonic() + seconds
    if search.follows_subscriptions:
        walked = _follow(rows, search, (first, last), count=count, ends_at=ends_at)
        if walked is not None:
            return walked
    messages: list[Message] = []
    upper, size = last, FIRST_PART
    is_all_read = search.reads_all
    if search.reads_deliveries and (few := _few_ids(search, first, last, seconds / 2)) is not None:
        rows, search = rows.filter(pk__in=few), search.without_deliveries
        if not search:
            return _page(rows, first=first, last=last, count=count)
    while upper >= first:
        lower, began = max(first, upper - size + 1), time.monotonic()
        limit = None if upper == last and size == 1 else max((ends_at - began) / 2, LEAST_SECONDS)
        among = search.among(rows, lower, upper).order_by("-pk")[: count - len(messages)]
        part = _search_part(among, limit, is_all_read=is_all_read)
        if part is not None:
            messages, upper = messages + part, lower - 1
        if len(messages) == count:
            return Walked(rows=messages, reached=messages[-1].pk, is_full=True)
        if first <= upper < last and time.monotonic() >= ends_at:
            return Walked(rows=messages, reached=upper + 1, is_full=False)
        size = max(size // 10, 1) if part is None else _next_size(size, time.monotonic() - began)
    return Walked(rows=messages, reached=None, is_full=False)


def _follow(
    rows: QuerySet[Message], search: Search, ids: tuple[int, int], *, count: int, ends_at: float
) -> Walked | None:
    """Walk along the subscriptions' deliveries; None if not even the first part was in time."""
    first, last = ids
    messages: list[Message] = []
    upper, size, named = last, count + 1, search.subscriptions or ()
    while upper >= first:
        try:
            with statement_time_limit(max((ends_at - time.monotonic()) / 2, LEAST_SECONDS)):
                newest, reached = _newest_ids(search, first, upper, size)
                among = rows.filter(pk__in=newest).order_by("-pk")
                messages += among[: count - len(messages)]
        except TimeUpError:
            is_begun = upper < last
            return Walked(rows=messages, reached=upper + 1, is_full=False) if is_begun else None
        if len(messages) == count:
            return Walked(rows=messages, reached=messages[-1].pk, is_full=True)
        if reached is None:
            break
        upper = reached - 1
        # The other conditions leave out most messages.
        size = min(4 * size, max(FEW // len(named), count + 1))
        if upper >= first and time.monotonic() >= ends_at:
            return Walked(rows=messages, reached=upper + 1, is_full=False)
    return Walked(rows=messages, reached=None, is_full=False)


def _newest_ids(search: Search, first: int, last: int, limit: int) -> tuple[list[int], int | None]:
    """Return the newest messages of the subscriptions, and the one from which on none is missing.

    Of each subscription `limit` deliveries are read.
    """
    ids, reached = queries.row(
        "newest_of_subscriptions",
        {
            "subscriptions": list(search.subscriptions or ()),
            "statuses": list(search.statuses or Status.values),
            "first": ids_of_message(first)[0],
            "last": ids_of_message(last)[1],
            "limit": limit,
        },
    )
    return ids, reached


def _few_ids(search: Search, first: int, last: int, seconds: float) -> list[int] | None:
    """Return the ids of the messages whose deliveries match, found by the deliveries' indexes.

    None if there are many: then the walk soon finds some.
    """
    rows = search.deliveries(Delivery.objects.order_by(), first, last)
    try:
        with statement_time_limit(seconds):
            ids = list(rows.values_list("message_id", flat=True)[: FEW + 1])
    except TimeUpError:
        return None
    return None if len(ids) > FEW else sorted(set(ids))


def _page(rows: QuerySet[Message], *, first: int, last: int, count: int) -> Walked:
    found = list(rows.filter(pk__gte=first, pk__lte=last).order_by("-pk")[:count])
    is_full = len(found) == count
    return Walked(rows=found, reached=found[-1].pk if is_full else None, is_full=is_full)


def _search_part(
    rows: QuerySet[Message], seconds: float | None, *, is_all_read: bool
) -> list[Message] | None:
    """Return the matches in a part; None if the time limit was exceeded."""
    if seconds is None:
        return list(rows)
    try:
        with (
            statement_time_limit(seconds),
            preferring_bitmap_scans() if is_all_read else nullcontext(),
        ):
            return list(rows)
    except TimeUpError:
        return None


def _next_size(size: int, took: float) -> int:
    if took < QUICK_SECONDS:
        return size * 2
    return max(size // 2, 1) if took > SLOW_SECONDS else size


def _first(rows: QuerySet[Message]) -> int | None:
    return rows.values_list("pk", flat=True).first()
