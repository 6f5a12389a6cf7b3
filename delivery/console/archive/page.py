"""Queries of the archive's pages: extent, contents, and messages found only there."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings

from delivery.database.queries import named_rows
from delivery.models import ArchiveChunk, Archived, ArchiveFile, ChunkState, Message
from delivery.support.payload import Payload, payload_of
from delivery.support.replays import archive_lookup
from delivery.support.replays.archive_lookup import (
    ArchivedAttempt,
    ArchivedDelivery,
    ArchivedMessage,
)

if TYPE_CHECKING:
    from delivery.history.archive.lookup import ArchiveLine

SHOWN = 100
# The longest interval for a search of messages within a request.
LONGEST_SEARCH = timedelta(days=1)
_TABLES = ("messages", "deliveries", "attempts", "journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTable:
    """The archive's files of a table; the dates are None when there are none."""

    table: str
    files: int = 0
    rows: int = 0
    bytes: int = 0
    days: int = 0
    first_day: date | None = None
    last_day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePage:
    url: str
    until: datetime | None
    tables: Sequence[ArchivedTable]
    is_moving: bool

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    attempt: ArchivedAttempt
    answer: Payload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    delivery: ArchivedDelivery
    attempts: list[AttemptRow]

    @property
    def is_fetched(self) -> bool:
        return self.delivery.mode == "PULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message for the page.

    `is_there`: PostgreSQL has it as well, so it has the ordinary page.
    """

    message: ArchivedMessage
    body: Payload
    headers: list[tuple[str, Any]]
    deliveries: list[DeliveryRow]
    is_there: bool


def read_archive_page() -> ArchivePage:
    tables = {row["table"]: ArchivedTable(**row) for row in named_rows("archive_overview", {})}
    return ArchivePage(
        url=str(settings.ENVIRONMENT.history_url),
        until=Archived.objects.values_list("until", flat=True).first(),
        tables=[tables.get(table, ArchivedTable(table=table)) for table in _TABLES],
        is_moving=ArchiveChunk.objects.exclude(state=ChunkState.DONE).exists(),
    )


def may_have_message(message_id: int) -> bool:
    """Return whether a file of the archive may contain a message.

    The check is cheap; only False is certain.
    """
    files = ArchiveFile.objects.filter(
        table="messages",
        chunk__state=ChunkState.DONE,
        first_id__lte=message_id,
        last_id__gte=message_id,
    )
    return files.exists()


def archived_message(id: int) -> ShownMessage | None:
    """Load a message from the archive; None if the archive does not have it.

    Raise ArchiveError when the archive cannot be read.
    """
    archived = archive_lookup.find_message(id)
    if archived is None:
        return None
    return ShownMessage(
        message=archived,
        body=payload_of(archived.body),
        headers=sorted(archived.headers.items()),
        deliveries=[
            DeliveryRow(
                delivery=delivery,
                attempts=[_shown(attempt) for attempt in reversed(delivery.attempts)],
            )
            for delivery in archived.deliveries
        ],
        is_there=Message.objects.filter(pk=id).exists(),
    )


def published_messages(*, since: datetime, until: datetime, event_type: str) -> "list[ArchiveLine]":
    """Return the first messages published in the interval.

    Raise ArchiveError when the archive cannot be read.
    """
    return archive_lookup.open_lookup().published(
        since=since, until=until, event_type=event_type, limit=SHOWN
    )


def _shown(attempt: ArchivedAttempt) -> AttemptRow:
    return AttemptRow(
        attempt=attempt, answer=payload_of(attempt.excerpt) if attempt.excerpt else None
    )
