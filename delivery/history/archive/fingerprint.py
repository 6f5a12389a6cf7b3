"""Counts and checksums of rows, computed by PostgreSQL and from Arrow: equal rows, equal results.

It detects missing, duplicate and different rows, independently of their order. It protects against
faults, not against forgery. `history/README.md` has the formula and the reasons.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import compute

from delivery.history.schemas import Column

# The column with a row's checksum.
CHECKSUM = "checksum"
_MASK = 2**64 - 1
# In place of null numbers and texts: values, which hardly ever occur.
_NO_NUMBER = 1 - 2**63
_NO_TEXT, _BETWEEN = b"\x02", b"\x01"
# Up to this mean size in bytes, hashing each distinct value once is faster.
_SMALL = 64
_DIGEST_BYTES = 8
# With smaller shifts, small numbers of neighbouring columns would cancel out; with much larger
# ones, their upper bits would be lost.
_FIRST_SHIFT, _SHIFT_APART = 11, 3
# An odd number with well-distributed bits (the golden ratio), and the shifts that move a product's
# upper bits down (as in SplitMix64).
_SPREADING_FACTOR, _SPREADING_BITS = 0x9E3779B97F4A7C15, (30, 27)
_NO_NAMES: Mapping[str, str] = {}
# Appended to a time's name: the time's column of microseconds.
_WHOLE = "_whole"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of rows and their checksum."""

    rows: int = 0
    checksum: int = 0

    @property
    def checksum_text(self) -> str:
        """The checksum in hexadecimal, as in the ledger: it does not fit into a bigint."""
        return f"{self.checksum:016x}"

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(self.rows + other.rows, (self.checksum + other.checksum) & _MASK)


NO_ROWS = Fingerprint()


def fingerprint_sql(
    columns: Sequence[Column],
    *,
    among: Sequence[Column] = (),
    named: Mapping[str, str] = _NO_NAMES,
    shared: Mapping[str, str | bytes] | None = None,
    usual: Mapping[str, str | None] | None = None,
) -> str:
    """Return the SQL expression of a row's checksum over columns with these names.

    The row also needs the columns of `whole_times_sql`. If the columns are only a part of the row,
    `among` has all; the checksum is the XOR of the parts', and texts and bytes are in the same
    part. `named` has other names in the statement for some columns. `shared` has the texts and
    bytes, if all rows have the same; `usual` has the texts of most rows, if there are no bytes.
    """
    laid = []
    for place, column in enumerate(_numbers(among or columns)):
        if column in columns:
            value = _whole(column, named.get(column.name, column.name))
            laid.append(f"{value} # ({value} << {_shift(place)})")
    if _texts(columns) or _bytes(columns):
        laid.append(_digest_sql(columns, shared, usual))
    return " # ".join(laid)


def _digest_sql(
    columns: Sequence[Column],
    shared: Mapping[str, str | bytes] | None,
    usual: Mapping[str, str | None] | None,
) -> str:
    """Return the SQL expression of the digest of texts and bytes."""
    if shared is not None:
        return _literal_digest(columns, shared)
    text = f"substr(md5({_joined(columns)}), 1, {2 * _DIGEST_BYTES})"
    digest = f"('x' || {text})::bit({8 * _DIGEST_BYTES})::bigint"
    if usual is None:
        return digest
    # The values are constants of ours.
    are_usual = " AND ".join(
        f"{name} IS NULL" if value is None else f"{name} = '{value}'"
        for name, value in usual.items()
    )
    return f"CASE WHEN {are_usual} THEN {_literal_digest(columns, usual)} ELSE {digest} END"


def whole_times_sql(columns: Sequence[Column]) -> list[str]:
    """Return SQL columns with the times as microseconds since 1970.

    Computed once, because PostgreSQL takes longer for it than for the rest of a number's share.
    Floating point is exact to the microsecond until 2106.
    """
    return [
        f"(date_part('epoch', {column.name}) * 1000000)::bigint AS {column.name}{_WHOLE}"
        for column in columns
        if column.type == "timestamp"
    ]


def fingerprint_of(checksums: pa.Array) -> Fingerprint:
    """Return the fingerprint of rows with these checksums: the sum of the spread checksums.

    Without spreading, values swapped between two rows would not change the sum.
    """
    spread = checksums.cast(pa.uint64(), safe=False)
    for bits in _SPREADING_BITS:
        spread = compute.bit_wise_xor(
            spread, compute.shift_right(spread, pa.scalar(bits, pa.uint64()))
        )
        spread = compute.multiply(spread, pa.scalar(_SPREADING_FACTOR, pa.uint64()))
    return Fingerprint(len(checksums), (compute.sum(spread).as_py() or 0) & _MASK)


def fingerprint_of_batches(
    columns: Sequence[Column], batches: Iterable[pa.RecordBatch]
) -> Fingerprint:
    """Compute the fingerprint of these columns of batches."""
    return sum((fingerprint_of(row_checksums(columns, batch)) for batch in batches), Fingerprint())


def row_checksums(columns: Sequence[Column], batch: pa.RecordBatch) -> pa.Array:
    checksums = pa.repeat(pa.scalar(0, pa.uint64()), batch.num_rows)
    for place, column in enumerate(_numbers(columns)):
        # Times are microseconds since 1970.
        value = (
            batch.column(column.name)
            .cast(pa.int64())
            .fill_null(_NO_NUMBER)
            .cast(pa.uint64(), safe=False)
        )
        for each in (value, compute.shift_left(value, pa.scalar(_shift(place), pa.uint64()))):
            checksums = compute.bit_wise_xor(checksums, each)
    texts = [
        batch.column(column.name).cast(pa.binary())
        for column in (*_texts(columns), *_bytes(columns))
    ]
    joined = compute.binary_join_element_wise(
        *texts, _BETWEEN, null_handling="replace", null_replacement=_NO_TEXT
    )
    return compute.bit_wise_xor(checksums, _digest(joined))


def _shift(place: int) -> int:
    return _FIRST_SHIFT + _SHIFT_APART * place


def _digest(values: pa.Array) -> pa.Array:
    """Return the first 64 bits of each value's MD5. Small values usually have few distinct ones."""
    if values.nbytes > _SMALL * len(values):
        return pa.array(map(_md5, values.to_pylist()), pa.uint64())
    encoded = values.dictionary_encode()
    return pa.array(map(_md5, encoded.dictionary.to_pylist()), pa.uint64()).take(encoded.indices)


def _md5(value: bytes) -> int:
    return int.from_bytes(hashlib.md5(value, usedforsecurity=False).digest()[:_DIGEST_BYTES])


def _literal_digest(columns: Sequence[Column], values: Mapping[str, str | bytes | None]) -> str:
    """Return the digest of these values as SQL."""
    found = [values[column.name] for column in (*_texts(columns), *_bytes(columns))]
    joined = _BETWEEN.join(
        value.encode() if isinstance(value, str) else _NO_TEXT if value is None else value
        for value in found
    )
    return f"x'{_md5(joined):016x}'::bigint"


def _whole(column: Column, name: str) -> str:
    """Return a column as bigint."""
    value = f"{name}{_WHOLE}" if column.type == "timestamp" else f"{name}::bigint"
    return f"coalesce({value}, {_NO_NUMBER})" if column.is_nullable else value


def _joined(columns: Sequence[Column]) -> str:
    """Return the texts, followed by the bytes, as a single value."""
    texts = f" || {_literal(_BETWEEN)} || ".join(_filled(column) for column in _texts(columns))
    octets = [f" || {_literal(_BETWEEN)}::bytea || {_filled(column)}" for column in _bytes(columns)]
    return f"convert_to({texts}, 'UTF8'){''.join(octets)}" if octets else texts


def _filled(column: Column) -> str:
    return f"coalesce({column.name}, {_literal(_NO_TEXT)})" if column.is_nullable else column.name


def _literal(value: bytes) -> str:
    return f"E'\\x{value.hex()}'"


def _numbers(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type not in ("string", "binary")]


def _texts(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type == "string"]


def _bytes(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.type == "binary"]
