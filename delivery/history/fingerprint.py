"""Counts and checksums of rows, computed alike by PostgreSQL and from Arrow: what is the same has the same.

A row's checksum is PostgreSQL's hash of a record: of its numbers and times, of its texts, which count as one, and of each of its columns of
bytes; of texts and bytes it takes the first 60 bits of the MD5. Of rows it is the sum of those, spread, in 64 bits. It tells a row that is missing, doubled or
different, or has another's value, whatever the order: of 2³² faults one goes unseen, for a value is folded into 32 bits. It guards
against faults, not against forgers.

Rows of a table that is partitioned by hash lie by that hash (`hash_record_extended`): so it stays what it is. PostgreSQL has it within a
microsecond; sums over expressions for each column took it longer than reading the rows.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute

from delivery.history.schemas import Column

# The column of a row's checksum.
CHECKSUM = "checksum"
_MASK = 2**64 - 1
_HEX_DIGITS = 15
# In place of a text that is null: hardly one that anybody has.
_NO_TEXT, _BETWEEN = "\x02", "\x01"
# What a small value is worth looking up among those that were hashed already, in bytes.
_SMALL = 64
# PostgreSQL counts its microseconds from 2000-01-01.
_EPOCH = 946_684_800_000_000
# `hash_bytes_uint32_extended` of PostgreSQL (src/common/hashfn.c, by Bob Jenkins), for a key of four bytes: how it begins, and by
# how many bits each step turns which of its three words.
_BEGIN = (0x9E3779B9 + 4 + 3_923_095) % 2**32
_STEPS = (
    ("c", "b", 14),
    ("a", "c", 11),
    ("b", "a", 25),
    ("c", "b", 16),
    ("a", "c", 4),
    ("b", "a", 14),
    ("c", "b", 24),
)
# An odd number with bits everywhere (the golden ratio), and by how much a product's upper bits are brought down (as SplitMix64 does).
_SPREADING_FACTOR, _SPREADING_BITS = 0x9E3779B97F4A7C15, (30, 27)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows, and their checksum."""

    rows: int = 0
    checksum: int = 0

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(self.rows + other.rows, (self.checksum + other.checksum) & _MASK)


def in_postgresql(columns: Sequence[Column]) -> str:
    """Return the expression of a row's checksum, of columns with these names."""
    texts = " || chr(1) || ".join(
        f"coalesce({column.name}, chr(2))" if column.is_nullable else column.name
        for column in _texts(columns)
    )
    hashed = [*([f"({texts})"] if texts else []), *(column.name for column in _bytes(columns))]
    values = [column.name for column in _numbers(columns)]
    values += [
        f"('x' || substr(md5({text}), 1, {_HEX_DIGITS}))::bit({4 * _HEX_DIGITS})::bigint" for text in hashed
    ]
    return f"hash_record_extended(ROW({', '.join(values)}), 0)"


def given(checksums: pa.Array) -> Fingerprint:
    """Return the fingerprint of rows with these checksums: their sum, once their bits are spread.

    For a record's hash is a sum itself: what two rows have of each other would not show.
    """
    spread = checksums.cast(pa.uint64(), safe=False)
    for bits in _SPREADING_BITS:
        spread = compute.bit_wise_xor(spread, compute.shift_right(spread, pa.scalar(bits, pa.uint64())))
        spread = compute.multiply(spread, pa.scalar(_SPREADING_FACTOR, pa.uint64()))
    return Fingerprint(len(checksums), (compute.sum(spread).as_py() or 0) & _MASK)


def of_batches(columns: Sequence[Column], batches: Iterable[pa.RecordBatch]) -> Fingerprint:
    """Compute it of these columns of batches."""
    return sum((given(_checksums(columns, batch)) for batch in batches), Fingerprint())


def _checksums(columns: Sequence[Column], batch: pa.RecordBatch) -> pa.Array:
    values = [_number(batch.column(column.name)) for column in _numbers(columns)]
    if texts := [batch.column(column.name) for column in _texts(columns)]:
        joined = compute.binary_join_element_wise(
            *texts, _BETWEEN, null_handling="replace", null_replacement=_NO_TEXT
        )
        values.append(_digest(joined.cast(pa.binary())))
    values += [_digest(batch.column(column.name)) for column in _bytes(columns)]
    found = pa.repeat(pa.scalar(0, pa.uint64()), batch.num_rows)
    for each in values:
        # Beyond 64 bits it begins anew, as unsigned integers do.
        found = compute.add(compute.multiply(found, pa.scalar(31, pa.uint64())), _hash(each))
    return found


def _number(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return compute.subtract(column.cast(pa.int64()), _EPOCH)
    return column.cast(pa.int64())


def _hash(values: pa.Array) -> pa.Array:
    """Hash whole numbers as PostgreSQL does, whatever their width; null is 0."""
    low = values.cast(pa.uint32(), safe=False)
    high = compute.shift_right(values, 32).cast(pa.uint32(), safe=False)
    high = compute.if_else(compute.less(values, 0), compute.bit_wise_not(high), high)
    begin = pa.scalar(_BEGIN, pa.uint32())
    begun = pa.repeat(begin, len(values))
    words = {"a": compute.add(compute.bit_wise_xor(low, high), begin), "b": begun, "c": begun}
    for changed, other, bits in _STEPS:
        mixed = compute.bit_wise_xor(words[changed], words[other])
        words[changed] = compute.subtract(mixed, _turned(words[other], bits))
    found = compute.bit_wise_or(
        compute.shift_left(words["b"].cast(pa.uint64()), pa.scalar(32, pa.uint64())),
        words["c"].cast(pa.uint64()),
    )
    return found.fill_null(0)


def _turned(words: pa.Array, bits: int) -> pa.Array:
    left, right = pa.scalar(bits, pa.uint32()), pa.scalar(32 - bits, pa.uint32())
    return compute.bit_wise_or(compute.shift_left(words, left), compute.shift_right(words, right))


def _digest(column: pa.Array) -> pa.Array:
    """Return the first 60 bits of the MD5 of each value; most columns of small ones have few different."""
    if column.nbytes > _SMALL * len(column):
        return pa.array(map(_md5, column.to_pylist()), pa.int64())
    encoded = column.dictionary_encode()
    return pa.array(map(_md5, encoded.dictionary.to_pylist()), pa.int64()).take(encoded.indices)


def _md5(value: bytes) -> int:
    return int.from_bytes(hashlib.md5(value, usedforsecurity=False).digest()[:8]) >> (64 - 4 * _HEX_DIGITS)


def _numbers(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type not in ("string", "binary")]


def _texts(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type == "string"]


def _bytes(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type == "binary"]
