"""The message columns of deliveries: read once for all deliveries of a message.

PostgreSQL took a third of the statement's time to look each message up for each delivery. Instead
it sends a message's columns with their part of the deliveries' checksums. This part includes the
message's id, and the delivery's part leaves `message_id` out. So a delivery with the columns of
another message has a wrong checksum, and the export fails. So it does if a delivery arrives with
another `message_id`: it is always the upper part of the delivery's id.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyarrow import compute

from delivery.database.statements import statement
from delivery.history.archive.fingerprint import CHECKSUM, fingerprint_sql, whole_times_sql
from delivery.history.postgres.source import Read
from delivery.history.schemas import DELIVERIES, Column, arrow_schema

_KEY = "message_id"
# The columns whose part of the checksum comes with the message.
MESSAGE_PART = tuple(
    column for column in DELIVERIES.bare if column.is_of_message or column.name == _KEY
)
_SCHEMA = arrow_schema((*MESSAGE_PART, Column(CHECKSUM, "bigint")))
_COMPLETE = arrow_schema((*DELIVERIES.bare, Column(CHECKSUM, "bigint")))
# The lower bits of a delivery's id; the others are the message's.
_DELIVERY_BITS = 20
# To read a few unneeded messages is faster than to begin another span.
_MOST_BETWEEN = 8


class LostMessageError(RuntimeError):
    """A delivery's message did not arrive, or not the id of it."""


class MessageColumns:
    """Adds the columns of their messages to deliveries; `read` executes a statement."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def joined(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield deliveries, which are sorted by message, with all bare columns.

        Raises LostMessageError.
        """
        for batch in filter(len, batches):
            ids = batch.column(_KEY)
            if ids != compute.shift_right(batch.column("id"), _DELIVERY_BITS):
                raise LostMessageError("Deliveries arrived with the ids of other messages.")
            found = pa.Table.from_batches(self._read(columns_statement(ids), _SCHEMA), _SCHEMA)
            places = compute.index_in(ids, value_set=found[_KEY].combine_chunks())
            if places.null_count:
                (lost, *_) = ids.filter(places.is_null()).to_pylist()
                raise LostMessageError(f"PostgreSQL has no message {lost}, but a delivery of it.")
            of_messages = found.take(places).combine_chunks()
            columns = {name: of_messages[name].combine_chunks() for name in _SCHEMA.names}
            columns |= {name: batch.column(name) for name in batch.schema.names if name != CHECKSUM}
            columns[CHECKSUM] = compute.bit_wise_xor(batch.column(CHECKSUM), columns[CHECKSUM])
            yield pa.RecordBatch.from_arrays(
                [columns[name] for name in _COMPLETE.names], schema=_COMPLETE
            )


def columns_statement(ids: pa.Array) -> str:
    """Return the statement for the columns of the messages with these sorted ids."""
    firsts, lasts = spans(ids)
    found = statement("archive_messages_of") % {
        "firsts": id_array(firsts),
        "lasts": id_array(lasts),
        "first": firsts[0],
        "last": lasts[-1],
    }
    whole = ", ".join(["found.*", *whole_times_sql(MESSAGE_PART)])
    names = ", ".join(column.name for column in MESSAGE_PART)
    checksum = f"{fingerprint_sql(MESSAGE_PART, among=DELIVERIES.bare)} AS {CHECKSUM}"
    # All parts of the statement are ours.
    return f"SELECT {names}, {checksum} FROM (SELECT {whole} FROM ({found}) AS found) AS found"  # noqa: S608


def spans(ids: pa.Array) -> tuple[list[int], list[int]]:
    """Return the first and the last id of each span of at least one sorted id."""
    ids = compute.unique(ids)
    is_beyond = compute.greater(compute.pairwise_diff(ids), _MOST_BETWEEN + 1)
    places = [0, *compute.indices_nonzero(is_beyond).to_pylist()]
    firsts, before = ids.take(pa.array(places)), [place - 1 for place in [*places[1:], len(ids)]]
    return firsts.to_pylist(), ids.take(pa.array(before)).to_pylist()


def id_array(ids: Sequence[int]) -> str:
    return f"'{{{','.join(map(str, ids))}}}'"
