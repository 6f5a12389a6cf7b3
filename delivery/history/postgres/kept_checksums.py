"""Checksums of the rows of an archived interval still in PostgreSQL: see `kept_rows`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyarrow import compute

from delivery.database.statements import statement
from delivery.history.archive.fingerprint import (
    CHECKSUM,
    Fingerprint,
    fingerprint_sql,
    whole_times_sql,
)
from delivery.history.postgres.message_columns import (
    MESSAGE_PART,
    columns_statement,
    id_array,
    spans,
)
from delivery.history.postgres.sent_statements import USUAL
from delivery.history.postgres.source import ALL_IDS, Piece, Read
from delivery.history.postgres.successes import SUCCESS, SUCCESS_CHECKSUM, success_checksum_sql
from delivery.history.schemas import (
    ATTEMPTS,
    BY_NAME,
    DELIVERIES,
    Column,
    Table,
    arrow_schema,
)

# Messages whose columns are read by a single statement.
_MESSAGES_A_STATEMENT = 20_000
_DELIVERY_BITS = 20
ROWS = arrow_schema((Column("id", "bigint"), Column(CHECKSUM, "bigint")))
_IDS = arrow_schema((Column("id", "bigint"),))
_DELIVERIES = arrow_schema(
    (
        Column("id", "bigint"),
        Column("message_id", "bigint"),
        Column(CHECKSUM, "bigint"),
        Column(SUCCESS_CHECKSUM, "bigint"),
    )
)
_PARTS = arrow_schema((Column("message_id", "bigint"), Column(CHECKSUM, "bigint")))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file of the archive: the path, the ids of the rows, and the fingerprint of `Table.certain`.

    Without a fingerprint the file has not all of these columns.
    """

    path: str
    first_id: int
    last_id: int
    certain: Fingerprint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """An interval of a table, or of deliveries with their attempts, and the files of the days.

    `first` and `last` limit the ids. Without `is_whole` some files of the interval are damaged, so
    the others need not have all rows.
    """

    since: datetime
    until: datetime
    files: dict[str, list[KeptFile]]
    is_whole: bool
    first: int = ALL_IDS[0]
    last: int = ALL_IDS[1]

    def has_all_of(self, file: KeptFile) -> bool:
        """Return whether the part has all ids of the file."""
        return self.first <= file.first_id and file.last_id < self.last

    def piece(self, table: Table) -> Piece:
        return Piece(
            table=table.name, since=self.since, until=self.until, first=self.first, last=self.last
        )


def kept_checksums(read: Read, part: KeptPart) -> dict[str, pa.Table]:
    """Return PostgreSQL's rows of a part by table: their ids and checksums."""
    if DELIVERIES.name not in part.files:
        (name,) = part.files
        return {name: _arrived(read, _statement(part, BY_NAME[name]), ROWS)}
    deliveries = _arrived(read, _deliveries_statement(part), _DELIVERIES)
    of_messages = _message_parts(read, deliveries["message_id"])
    places = compute.index_in(deliveries["message_id"], value_set=of_messages["message_id"])
    parts = of_messages[CHECKSUM].take(places)
    checksums = compute.bit_wise_xor(deliveries[CHECKSUM], parts)
    succeeded = deliveries.filter(deliveries[SUCCESS_CHECKSUM].is_valid())
    successes = pa.table([succeeded["id"], succeeded[SUCCESS_CHECKSUM]], schema=ROWS)
    others = _arrived(read, _statement(part, ATTEMPTS), ROWS)
    return {
        DELIVERIES.name: pa.table([deliveries["id"], checksums], schema=ROWS),
        ATTEMPTS.name: pa.concat_tables([successes, others]),
    }


def _arrived(read: Read, select: str, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(read(select, schema), schema)


def _statement(part: KeptPart, table: Table) -> str:
    columns = table.certain
    whole = ", ".join(["found.*", *whole_times_sql(columns)])
    # All parts of the statements are ours.
    return (
        f"SELECT {table.key[0]} AS id, {fingerprint_sql(columns)} AS {CHECKSUM} "  # noqa: S608
        f"FROM (SELECT {whole} FROM ({part.piece(table).select}) AS found) AS found"
    )


def _deliveries_statement(part: KeptPart) -> str:
    """Return the statement for the part's deliveries, without their messages' part."""
    columns = [column for column in DELIVERIES.certain if column not in MESSAGE_PART]
    names = {column.name for column in columns}
    usual = {name: value for name, value in USUAL.items() if name in names}
    checksum = fingerprint_sql(columns, among=DELIVERIES.bare, usual=usual)
    whole = ", ".join(["found.*", *whole_times_sql((*columns, *SUCCESS))])
    return (
        f"SELECT id, message_id, {checksum} AS {CHECKSUM}, {success_checksum_sql()} "  # noqa: S608
        f"FROM (SELECT {whole} FROM ({part.piece(DELIVERIES).select}) AS found) AS found"
    )


def _message_parts(read: Read, ids: pa.ChunkedArray) -> pa.Table:
    """Return the messages' part of their deliveries' checksums."""
    found = [_PARTS.empty_table()]
    for some in _sorted_slices(ids):
        select = f"SELECT message_id, {CHECKSUM} FROM ({columns_statement(some)}) AS found"  # noqa: S608
        found.append(_arrived(read, select, _PARTS))
    return pa.concat_tables(found).combine_chunks()


def those_still_there(read: Read, ids: pa.ChunkedArray) -> pa.Array:
    """Return those of the deliveries, in PostgreSQL, of which the archive can have nothing else."""
    found = [_IDS.empty_table()]
    for some in _sorted_slices(compute.shift_right(ids, _DELIVERY_BITS)):
        firsts, lasts = spans(some)
        select = statement("archive_still_there") % {
            "firsts": id_array(firsts),
            "lasts": id_array(lasts),
            "first": firsts[0],
            "last": lasts[-1],
        }
        found.append(_arrived(read, select, _IDS))
    return pa.concat_tables(found).combine_chunks()["id"]


def _sorted_slices(ids: pa.ChunkedArray) -> Iterable[pa.Array]:
    found = compute.unique(ids)
    found = found.take(compute.sort_indices(found))
    for first in range(0, len(found), _MESSAGES_A_STATEMENT):
        yield found.slice(first, _MESSAGES_A_STATEMENT)
