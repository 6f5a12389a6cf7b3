"""Archive look-ups for the web and the chores: a message with deliveries and attempts, by id.

The modules for Parquet are imported at the first look-up: most processes never need them.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.db import connection

from delivery.models.message import public_id

if TYPE_CHECKING:
    from delivery.history.archive.archive import Archive
    from delivery.history.archive.lookup import Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedAttempt:
    number: int
    started_at: datetime
    duration_ms: int | None
    outcome: str
    status_code: int | None
    error: str
    excerpt: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedDelivery:
    """A delivery as last settled.

    `subscriber`, `subscription` and `endpoint` are the values at the time.
    """

    id: int
    settled_at: datetime
    status: str
    event_type: str
    kind: str
    subscriber: str
    subscription: str
    subscription_id: int
    mode: str
    endpoint: str
    queue_group: int | None
    replay_id: int | None
    redelivery: str
    reason: str
    receive_count: int
    attempts: tuple[ArchivedAttempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedMessage:
    """A message as published; `publisher` is None for Inturn's own messages.

    The message may still be in PostgreSQL as well.
    """

    id: int
    published_at: datetime
    event_type: str
    publisher: str | None
    headers: dict[str, str]
    content_type: str
    body: bytes = field(repr=False)
    destination: str
    edited_from: int | None
    owed: int | None
    deliveries: tuple[ArchivedDelivery, ...]

    @property
    def public_id(self) -> str:
        return public_id(self.id)


def find_message(id: int) -> ArchivedMessage | None:
    """Return the archived message or None; raises ArchiveError if the archive cannot be read."""
    archive = open_lookup()
    row = next((row for rows in archive.messages([id]) for row in rows), None)
    if row is None:
        return None
    day = row["published_at"].date()
    deliveries = archive.deliveries(id, since=day)
    attempts: dict[int, list[ArchivedAttempt]] = {}
    for attempt in archive.attempts([delivery["id"] for delivery in deliveries], since=day):
        attempts.setdefault(attempt["delivery_id"], []).append(
            ArchivedAttempt(**_columns(ArchivedAttempt, attempt))
        )
    return ArchivedMessage(
        **_columns(ArchivedMessage, row),
        headers=orjson.loads(row["headers"]),
        deliveries=tuple(
            ArchivedDelivery(
                **_columns(ArchivedDelivery, delivery),
                attempts=tuple(attempts.get(delivery["id"], ())),
            )
            for delivery in deliveries
        ),
    )


def open_lookup() -> "Lookup":
    """Return the archive, with the ledger read in the transaction of Django's connection.

    Raises ArchiveError if the storage does not answer: a web server's thread must not wait for it.
    """
    from delivery.history.archive.lookup import Lookup
    from delivery.history.archive.small_files import ArchiveError
    from delivery.history.archive.storage import require_recent_answer
    from delivery.history.spark.reach import ReachError

    url = str(settings.ENVIRONMENT.history_url)
    try:
        require_recent_answer(url)
    except ReachError as error:
        raise ArchiveError(str(error)) from error
    connection.ensure_connection()
    return Lookup(_archive(url), connection.connection)


@cache
def _archive(url: str) -> "Archive":
    """Return the single Archive of all look-ups, which reuses the connection to a store."""
    from delivery.history.archive.archive import Archive

    return Archive(url)


def _columns(kind: type[Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the dataclass's unchanged columns."""
    made = ("headers", "deliveries", "attempts")
    return {name: row[name] for name in kind.__slots__ if name not in made}
