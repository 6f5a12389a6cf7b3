"""The rows of a trace, beside message, deliveries and attempts.

The number of statements does not depend on the number of deliveries. The journal and the reports of
failures have no index for exactly this question, so the database ends these searches after a while;
then the trace reports their absence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from delivery.database.queries import TimeUpError, named_rows, statement_time_limit
from delivery.models import Delivery, EarlierSettlement, JournalKind, Message
from delivery.models.message import public_id
from delivery.states import FAILURES
from subscriptions.matching.errors_to import FAILED, failed_event_type
from subscriptions.models import ConfigurationChange

SECONDS = 0.06
ENTRIES = 100
COPIES = 20
# The kinds about all deliveries of a lane, of a subscription, or of the installation.
STOPS = (
    JournalKind.BLOCKED,
    JournalKind.SUSPENDED,
    JournalKind.RESUMED,
    JournalKind.HELD,
    JournalKind.ACTIVATED,
    JournalKind.DEACTIVATED,
    JournalKind.SHADOW,
    JournalKind.DISABLED,
    JournalKind.FROZEN,
    JournalKind.ENABLED,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EditedCopy:
    """`actor` is who sent it; empty if the configuration log does not have it."""

    message: Message
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRows:
    """`entries` and `reports` are None if the search for them took too long."""

    earlier: list[EarlierSettlement] = field(default_factory=list)
    entries: list[Row] | None = field(default_factory=list)
    reports: list[Row] | None = field(default_factory=list)
    copies: list[EditedCopy] = field(default_factory=list)


def read_trace_rows(
    message: Message, deliveries: Sequence[Delivery], *, now: datetime, reads_journal: bool = True
) -> TraceRows:
    """Load the rows; without the right to read the journal none of the entries and actors."""
    earlier = _earlier(deliveries)
    entries: list[Row] | None = []
    if reads_journal:
        entries = _within_time(lambda: _entries(message, deliveries, now=now))
    return TraceRows(
        earlier=earlier,
        entries=entries,
        reports=_reports(message, deliveries, earlier),
        copies=_copies(message, names_actors=reads_journal),
    )


def _earlier(deliveries: Sequence[Delivery]) -> list[EarlierSettlement]:
    """Return the settlements ended by persons; a late attempt ended none."""
    ids = [row.pk for row in deliveries]
    rows = EarlierSettlement.objects.filter(delivery_id__in=ids, is_amended=False)
    return list(rows.order_by("settled_at", "id")) if ids else []


def _entries(message: Message, deliveries: Sequence[Delivery], *, now: datetime) -> list[Row]:
    ends = [now if row.settled_at is None else row.settled_at for row in deliveries]
    return named_rows(
        "trace_entries",
        {
            "message": message.pk,
            "deliveries": [row.pk for row in deliveries],
            "subscriptions": sorted({row.subscription_id for row in deliveries}),
            "lanes": sorted({row.lane_id for row in deliveries if row.lane_id is not None}),
            "stops": [kind.value for kind in STOPS],
            "since": message.published_at,
            # A message without deliveries waits for nothing.
            "until": max(ends, default=message.published_at),
            "limit": ENTRIES,
        },
    )


def _reports(
    message: Message, deliveries: Sequence[Delivery], earlier: Sequence[EarlierSettlement]
) -> list[Row] | None:
    failures = [
        (row.pk, row.settled_at)
        for row in deliveries
        if row.status in FAILURES and row.settled_at is not None
    ]
    failures += [(row.delivery_id, row.settled_at) for row in earlier if row.status in FAILURES]
    if not failures or message.event_type.name == FAILED:
        return []
    ids, settled = zip(*failures, strict=True)
    values = {
        "deliveries": list(ids),
        "settled": list(settled),
        "event_type": failed_event_type().pk,
    }
    return _within_time(lambda: named_rows("trace_reports", values))


def _copies(message: Message, *, names_actors: bool) -> list[EditedCopy]:
    rows = Message.objects.filter(edited_from=message).only("id", "published_at").order_by("-id")
    copies = list(rows[:COPIES])
    if not copies or not names_actors:
        return [EditedCopy(row, "") for row in reversed(copies)]
    logged = ConfigurationChange.objects.filter(
        object_type=str(Message._meta.verbose_name),
        object_name__in=[row.public_id for row in copies],
        action="resubmitted",
    )
    actors = dict(logged.values_list("object_name", "actor"))
    return [EditedCopy(row, actors.get(public_id(row.pk), "")) for row in reversed(copies)]


def is_open(delivery: Delivery, at: datetime) -> bool:
    """Return whether the delivery waited at the time, as far as the row shows."""
    return delivery.settled_at is None or at <= delivery.settled_at


def _within_time(search: Callable[[], list[Row]]) -> list[Row] | None:
    try:
        with statement_time_limit(SECONDS):
            return search()
    except TimeUpError:
        return None
