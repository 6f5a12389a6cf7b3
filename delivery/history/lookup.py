"""Looking up rows of the archive by id, without a JVM: Arrow reads the few files that may have them.

The ledger says which files those are, and the statistics of their row groups which parts; rows come in small batches, so that many large
bodies are never in memory together. What has no file any more though the ledger names it raises ArchiveError.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import psycopg
import pyarrow as pa
from pyarrow import compute, dataset

from delivery.history.archive import Archive, ArchiveError
from delivery.history.schemas import ATTEMPTS, DELIVERIES, MESSAGES, Table
from delivery.sql import statement

Row = dict[str, Any]

# Bodies are up to a MiB.
_BATCH_ROWS = 64
_EVERY_ID = 2**63 - 1


class Lookup:
    """The archive as the ledger has it in this connection's transaction; its cursor rows are tuples."""

    def __init__(self, archive: Archive, database: psycopg.Connection[Any]) -> None:
        self._archive = archive
        self._database = database

    def messages(self, ids: Sequence[int]) -> Iterator[list[Row]]:
        """Yield those of these messages that are archived, some at a time."""
        if ids:
            yield from self._rows(MESSAGES, "id", ids, first=min(ids), last=max(ids))

    def deliveries(self, message_id: int, *, since: date) -> list[Row]:
        """Return the deliveries of a message published on that day, as each was settled last, by id."""
        found: dict[int, Row] = {}
        for rows in self._rows(DELIVERIES, "message_id", [message_id], since=since):
            for row in rows:
                if row["id"] not in found or found[row["id"]]["settled_at"] < row["settled_at"]:
                    found[row["id"]] = row
        return [found[id] for id in sorted(found)]

    def attempts(self, delivery_ids: Sequence[int], *, since: date) -> list[Row]:
        """Return the attempts at these deliveries, by delivery and number."""
        if not delivery_ids:
            return []
        bounds = {"first": min(delivery_ids), "last": max(delivery_ids)}
        found = self._rows(ATTEMPTS, "delivery_id", delivery_ids, since=since, **bounds)
        return sorted(
            (row for rows in found for row in rows), key=lambda row: (row["delivery_id"], row["number"])
        )

    def _rows(
        self,
        table: Table,
        column: str,
        ids: Sequence[int],
        *,
        since: date | None = None,
        first: int = 0,
        last: int = _EVERY_ID,
    ) -> Iterator[list[Row]]:
        files = self._files(table, since=since, first=first, last=last)
        if not files:
            return
        field = compute.field(column)
        # The bounds leave out row groups; of a list Arrow may not see what it leaves out.
        wanted = (field >= min(ids)) & (field <= max(ids)) & field.isin(list(ids))
        try:
            read = dataset.dataset(
                files, schema=table.arrow, filesystem=self._archive.files, format="parquet"
            )
            batches = read.to_batches(
                filter=wanted, batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1
            )
            for batch in batches:
                if batch.num_rows:
                    yield batch.to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise ArchiveError(
                f"The archive at {self._archive.url} cannot be read, though its ledger names the file: {error}. "
                "Look at HISTORY_URL, and whether all machines reach it."
            ) from error

    def _files(self, table: Table, *, since: date | None, first: int, last: int) -> list[str]:
        chosen = {"table": table.name, "since": since, "first": first, "last": last}
        rows = self._database.execute(statement("archive_files_with"), chosen).fetchall()
        return [self._archive.path(path) for (path,) in rows]
