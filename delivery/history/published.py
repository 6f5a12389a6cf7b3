"""Which messages of the archive were published at a time: found without a JVM, and without reading a body.

The ledger says which files have that day, and the statistics of their row groups which parts that time.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import compute, dataset

from delivery.history import ledger
from delivery.history.archive import Archive, ArchiveError
from delivery.history.schemas import MESSAGES

_COLUMNS = ["id", "published_at", "event_type", "publisher", "destination"]
_BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    id: int
    published_at: datetime
    event_type: str
    publisher: str | None
    destination: str


def published(
    archive: Archive,
    database: psycopg.Connection[Any],
    *,
    since: datetime,
    until: datetime,
    event_type: str = "",
    limit: int,
) -> list[Published]:
    """Return the first messages published from `since` to before `until`. Raises ArchiveError when it cannot be read."""
    files = ledger.files(database, MESSAGES.name, since=since.date(), until=until.date())
    if not files:
        return []
    at = compute.field("published_at")
    wanted = (at >= pa.scalar(since, MESSAGES.arrow.field("published_at").type)) & (
        at < pa.scalar(until, MESSAGES.arrow.field("published_at").type)
    )
    if event_type:
        wanted &= compute.field("event_type") == event_type
    try:
        rows = _rows(archive, [file.path for file in files], wanted)
        first = heapq.nsmallest(limit, rows, key=lambda row: (row["published_at"], row["id"]))
    except (OSError, pa.ArrowException) as error:
        raise ArchiveError(
            f"The archive at {archive.url} cannot be read, though its ledger names the file: {error}. "
            "Look at HISTORY_URL, and whether all machines reach it."
        ) from error
    return [Published(**row) for row in first]


def _rows(archive: Archive, paths: list[str], wanted: compute.Expression) -> Iterator[dict[str, Any]]:
    read = dataset.dataset(
        [archive.path(path) for path in paths],
        schema=MESSAGES.arrow,
        filesystem=archive.files,
        format="parquet",
    )
    batches = read.to_batches(columns=_COLUMNS, filter=wanted, batch_size=_BATCH_ROWS, fragment_readahead=1)
    for batch in batches:
        yield from batch.to_pylist()
