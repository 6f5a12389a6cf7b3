"""Attempts in the rows of their deliveries: most deliveries have no other.

PostgreSQL sends a delivery with the columns of the success and the success's checksum; here these
become rows of the attempts. To select, sort and send them once more took a quarter of an export.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from delivery.history.archive.fingerprint import (
    CHECKSUM,
    Fingerprint,
    fingerprint_of,
    fingerprint_sql,
)
from delivery.history.schemas import ATTEMPTS, DELIVERIES, Column, arrow_schema

SUCCESS_CHECKSUM = "success_checksum"
# The columns for the success in the statement `archive_deliveries`, after the delivery's; without a
# success, the first is null.
SUCCESS = (
    Column("started_at", "timestamp", is_nullable=True),
    Column("duration_ms", "int", is_nullable=True),
    Column("status_code", "int", is_nullable=True),
)
# A delivery as it is sent.
SENT = arrow_schema(
    (
        *DELIVERIES.selected,
        *SUCCESS,
        Column(CHECKSUM, "bigint"),
        Column(SUCCESS_CHECKSUM, "bigint"),
    )
)
# The attempt's columns whose names in a delivery are others, and those shared by all successes.
_RENAMED = {"delivery_id": "id", "number": "attempts"}
_SHARED: Mapping[str, str | bytes] = {"outcome": "SUCCESS", "error": "", "excerpt": b""}
_ROWS_A_BATCH = 65_536


class LostSuccessError(RuntimeError):
    """A success arrived without a checksum, or a checksum without the success."""


def success_checksum_sql() -> str:
    """Return the SQL expression of the success's checksum, null without a success."""
    checksum = fingerprint_sql(ATTEMPTS.bare, named=_RENAMED, shared=_SHARED)
    return f"CASE WHEN started_at IS NOT NULL THEN {checksum} END AS {SUCCESS_CHECKSUM}"


class RowSuccesses:
    """The successes in the rows of a piece of deliveries: some tens of bytes each."""

    def __init__(self) -> None:
        self.sent = Fingerprint()
        self._kept: list[pa.RecordBatch] = []

    def taken(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the successes of batches of SENT; yield the deliveries with their checksums.

        Raises LostSuccessError: successes are counted by their checksums, and PostgreSQL sends no
        number of them, so a success with a lost checksum would be missing unnoticed.
        """
        names = [column.name for column in DELIVERIES.selected]
        own = [_RENAMED.get(column.name, column.name) for column in ATTEMPTS.bare]
        needed = [name for name in own if name not in _SHARED]
        for batch in batches:
            is_success = batch.column(SUCCESS_CHECKSUM).is_valid()
            if is_success != batch.column("started_at").is_valid():
                raise LostSuccessError("PostgreSQL's successes and their checksums differ.")
            found = batch.filter(is_success)
            self.sent += fingerprint_of(found.column(SUCCESS_CHECKSUM))
            self._kept.append(found.select(needed))
            yield batch.select([*names, CHECKSUM])

    def among(self, others: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the successes and the other attempts of the same deliveries, in their order.

        Both are in the order of their deliveries.
        """
        rest = pa.Table.from_batches(self._kept, self._kept[0].schema) if self._kept else None
        self._kept = []
        for batch in others:
            if rest is None or not len(batch):
                yield batch
                continue
            # The last delivery may have more attempts in the next batch, before the success.
            count = _count_before(rest.column("id"), batch.column("delivery_id")[-1].as_py())
            yield from _merged(rest.slice(0, count), batch)
            rest = rest.slice(count)
        if rest is not None:
            for part in rest.to_batches(max_chunksize=_ROWS_A_BATCH):
                yield _attempts(part)


def _count_before(ids: pa.ChunkedArray, id: int) -> int:
    """Return how many of the sorted ids are smaller."""
    return bisect_left(range(len(ids)), id, key=lambda place: ids[place].as_py())


def _merged(successes: pa.Table, others: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    parts = [others, *map(_attempts, successes.to_batches())]
    both = pa.Table.from_batches(parts).combine_chunks()
    if len(successes):
        both = both.sort_by([(name, "ascending") for name in ATTEMPTS.key])
    yield from both.to_batches(max_chunksize=_ROWS_A_BATCH)


def _attempts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the kept columns of successes as attempts."""
    schema = arrow_schema(ATTEMPTS.bare)
    columns = [
        pa.repeat(pa.scalar(_SHARED[field.name], field.type), len(rows))
        if field.name in _SHARED
        else rows.column(_RENAMED.get(field.name, field.name))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
