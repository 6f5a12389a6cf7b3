"""Look-ups of rows in the archive, without a JVM: Arrow reads the few files which may have them.

The ledger names those files, and the statistics of their row groups select the parts to read. Rows
come in small batches, so many large bodies are never in memory together. A missing file of the
ledger raises ArchiveError, and so does another archive.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import compute, dataset

from delivery.database.statements import statement
from delivery.history.archive import identity, ledger
from delivery.history.archive.archive import Archive
from delivery.history.archive.small_files import ArchiveError
from delivery.history.schemas import ATTEMPTS, DELIVERIES, MESSAGES, Table
from delivery.history.spark.reach import shown_place

Row = dict[str, Any]

# A body may have up to 1 MiB.
_BATCH_ROWS = 64
_BATCH_ROWS_WITHOUT_BODIES = 16_384
_EVERY_ID = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLine:
    """The columns of a message in a list."""

    id: int
    published_at: datetime
    event_type: str
    publisher: str | None
    destination: str


class Lookup:
    """The archive, with the ledger read in this connection's transaction.

    The connection's cursors must return tuples.
    """

    def __init__(self, archive: Archive, database: psycopg.Connection[Any]) -> None:
        self._archive = archive
        self._database = database
        self._is_required = False

    def messages(self, ids: Sequence[int]) -> Iterator[list[Row]]:
        """Yield the archived among these messages, in batches."""
        if ids:
            yield from self._with_ids(MESSAGES, "id", ids, first=min(ids), last=max(ids))

    def published(
        self, *, since: datetime, until: datetime, event_type: str = "", limit: int
    ) -> list[ArchiveLine]:
        """Return the first messages from `since` to before `until`, without reading bodies."""
        files = ledger.files(self._database, MESSAGES.name, since=since.date(), until=until.date())
        at, kind = compute.field("published_at"), MESSAGES.arrow.field("published_at").type
        wanted = (at >= pa.scalar(since, kind)) & (at < pa.scalar(until, kind))
        if event_type:
            wanted &= compute.field("event_type") == event_type
        groups = self._rows(
            MESSAGES,
            ledger.paths(files),
            wanted,
            columns=list(ArchiveLine.__slots__),
            batch_rows=_BATCH_ROWS_WITHOUT_BODIES,
        )
        rows = (row for rows in groups for row in rows)
        first = heapq.nsmallest(limit, rows, key=lambda row: (row["published_at"], row["id"]))
        return [ArchiveLine(**row) for row in first]

    def deliveries(self, message_id: int, *, since: date) -> list[Row]:
        """Return the deliveries of a message published on the day, by id, each as last settled."""
        latest: dict[int, Row] = {}
        for rows in self._with_ids(DELIVERIES, "message_id", [message_id], since=since):
            for row in rows:
                if row["id"] not in latest or latest[row["id"]]["settled_at"] < row["settled_at"]:
                    latest[row["id"]] = row
        return [latest[id] for id in sorted(latest)]

    def attempts(self, delivery_ids: Sequence[int], *, since: date) -> list[Row]:
        """Return the attempts of these deliveries, by delivery and number."""
        if not delivery_ids:
            return []
        bounds = {"first": min(delivery_ids), "last": max(delivery_ids)}
        groups = self._with_ids(ATTEMPTS, "delivery_id", delivery_ids, since=since, **bounds)
        return sorted(
            (row for rows in groups for row in rows),
            key=lambda row: (row["delivery_id"], row["number"]),
        )

    def _with_ids(
        self,
        table: Table,
        column: str,
        ids: Sequence[int],
        *,
        since: date | None = None,
        first: int = 0,
        last: int = _EVERY_ID,
    ) -> Iterator[list[Row]]:
        chosen = {"table": table.name, "since": since, "first": first, "last": last}
        files = self._database.execute(statement("archive_files_with"), chosen).fetchall()
        field = compute.field(column)
        # The bounds skip row groups by their statistics; Arrow may not derive bounds from a list.
        wanted = (field >= min(ids)) & (field <= max(ids)) & field.isin(list(ids))
        return self._rows(table, [path for (path,) in files], wanted)

    def _rows(
        self,
        table: Table,
        paths: Sequence[str],
        wanted: compute.Expression,
        *,
        columns: list[str] | None = None,
        batch_rows: int = _BATCH_ROWS,
    ) -> Iterator[list[Row]]:
        if not paths:
            return
        archive = self._archive
        if not self._is_required:
            identity.require_archive(self._database, archive.url)
            self._is_required = True
        try:
            read = dataset.dataset(
                [archive.path(path) for path in paths],
                schema=table.arrow,
                filesystem=archive.files,
                format="parquet",
            )
            batches = read.to_batches(
                columns=columns,
                filter=wanted,
                batch_size=batch_rows,
                batch_readahead=1,
                fragment_readahead=1,
            )
            for batch in batches:
                if batch.num_rows:
                    yield batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(
                f"The archive at {shown_place(archive.url)} cannot be read, though its ledger "
                f"names the file: {error}. Try again, for files may just have been compacted; "
                "or look at HISTORY_URL, and whether all machines reach it."
            ) from error
