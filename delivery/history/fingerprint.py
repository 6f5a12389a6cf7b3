"""Counts and checksums of rows, computed alike by PostgreSQL and from Arrow: what is the same has the same.

Of each column the sum over all rows of its value, spread, and made different from row to row by the row's key, in 64 bits. The value of bytes is the first
60 bits of their MD5, and so is that of a row's texts, which count as one column. It tells a row that is missing,
doubled or different, or has another's value, whatever the order; and which columns. It guards against faults, not against forgers.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
from pyarrow import compute

from delivery.history.schemas import Column, Table

TEXTS = "texts"
_MASK = 2**64 - 1
_HEX_DIGITS = 15
# In place of null: hardly a number, or a text, that anybody has.
_NO_NUMBER, _NO_TEXT, _BETWEEN = -7_046_029_254_386_353_131, "\x02", "\x01"
# Numbers that follow each other are spread over 63 bits by a product of their lower 31 (Knuth's multiplicative hashing).
_LOW, _FACTOR, _KEY_FACTORS = 2**31 - 1, 2_654_435_761, (2_246_822_519, 3_266_489_917)

_NUMBERS = {
    "bigint": "{}",
    "int": "{}::bigint",
    "timestamp": "(extract(epoch FROM {}) * 1000000)::bigint",
}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows, and checksums by column."""

    rows: int = 0
    sums: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        sums = {
            name: (self.sums.get(name, 0) + other.sums.get(name, 0)) & _MASK
            for name in {**self.sums, **other.sums}
        }
        return Fingerprint(self.rows + other.rows, sums)

    def different_from(self, other: "Fingerprint") -> list[str]:
        """Return the columns that are not the same in the other."""
        return [name for name, total in self.sums.items() if total != other.sums.get(name)]


def in_postgresql(table: Table, select: str) -> str:
    """Return a statement that gives the row of which `of_row` makes the fingerprint of what `select` gives."""
    numbers = {column.name: _NUMBERS[column.type].format(column.name) for column in _numbers(table)}
    texts = " || chr(1) || ".join(
        f"coalesce({column.name}, chr(2))" if column.is_nullable else column.name for column in _texts(table)
    )
    hashed = [*([f"({texts})"] if texts else []), *(column.name for column in _bytes(table))]
    values = [f"coalesce({number}, {_NO_NUMBER})" for number in numbers.values()]
    values += [
        f"('x' || substr(md5({text}), 1, {_HEX_DIGITS}))::bit({4 * _HEX_DIGITS})::bigint" for text in hashed
    ]
    weight = " # ".join(
        f"(({numbers[name]} & {_LOW}) * {factor})"
        for name, factor in zip(table.key, _KEY_FACTORS, strict=False)
    )
    named = ", ".join(f"{value} AS value{nth}" for nth, value in enumerate(values))
    sums = ", ".join(
        f"sum(value{nth} # ((value{nth} & {_LOW}) * {_FACTOR}) # weight)" for nth in range(len(values))
    )
    # OFFSET: what has a name is computed once.
    return f"SELECT count(*), {sums} FROM (SELECT {named}, {weight} AS weight FROM ({select}) AS found OFFSET 0) AS row"  # noqa: S608 - ours


def of_row(table: Table, row: tuple[Any, ...]) -> Fingerprint:
    rows, *sums = row
    if not rows:
        return Fingerprint()
    return Fingerprint(
        rows, {name: int(total) & _MASK for name, total in zip(_names(table), sums, strict=True)}
    )


def of_batches(table: Table, batches: Iterable[pa.RecordBatch]) -> Fingerprint:
    """Compute it of batches with the table's columns."""
    return sum((_of_batch(table, batch) for batch in batches), Fingerprint())


def _of_batch(table: Table, batch: pa.RecordBatch) -> Fingerprint:
    keys = [
        _spread(batch.column(name).cast(pa.int64()), factor)
        for name, factor in zip(table.key, _KEY_FACTORS, strict=False)
    ]
    weights = reduce(compute.bit_wise_xor, keys)
    values = [batch.column(column.name).cast(pa.int64()).fill_null(_NO_NUMBER) for column in _numbers(table)]
    if texts := [batch.column(column.name) for column in _texts(table)]:
        joined = compute.binary_join_element_wise(
            *texts, _BETWEEN, null_handling="replace", null_replacement=_NO_TEXT
        )
        values.append(_hashed(joined.cast(pa.binary())))
    values += [_hashed(batch.column(column.name)) for column in _bytes(table)]
    # Beyond 64 bits it begins anew, as unsigned integers do.
    parts = [reduce(compute.bit_wise_xor, [each, _spread(each, _FACTOR), weights]) for each in values]
    sums = [(compute.sum(part).as_py() or 0) & _MASK for part in parts]
    return Fingerprint(batch.num_rows, dict(zip(_names(table), sums, strict=True)))


def _spread(numbers: pa.Array, factor: int) -> pa.Array:
    return compute.multiply(compute.bit_wise_and(numbers, _LOW), factor)


def _hashed(column: pa.Array) -> pa.Array:
    """Hash each different value once: most columns of texts have few."""
    encoded = column.dictionary_encode()
    hashes = [
        int.from_bytes(hashlib.md5(value, usedforsecurity=False).digest()[:8]) >> (64 - 4 * _HEX_DIGITS)
        for value in encoded.dictionary.to_pylist()
    ]
    return pa.array(hashes, pa.int64()).take(encoded.indices)


def _names(table: Table) -> list[str]:
    """Return what the checksums are called, in their order."""
    texts = [TEXTS] if _texts(table) else []
    return [
        *(column.name for column in _numbers(table)),
        *texts,
        *(column.name for column in _bytes(table)),
    ]


def _numbers(table: Table) -> list[Column]:
    return [column for column in table.columns if column.type in _NUMBERS]


def _texts(table: Table) -> list[Column]:
    return [column for column in table.columns if column.type == "string"]


def _bytes(table: Table) -> list[Column]:
    return [column for column in table.columns if column.type == "binary"]
