"""Damage to files of an archive: each kind, at a place that a seeded generator chooses."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

# As the export writes it.
_COMPRESSION = "zstd"


@dataclass(frozen=True, slots=True)
class Damager:
    """Damages one file at a time; `mended` puts its content back."""

    chance: random.Random

    def flip_a_byte(self, file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[self.chance.randrange(len(content))] ^= 1 << self.chance.randrange(8)
        file.write_bytes(content)

    def rewrite(self, file: Path) -> None:
        """Write other values as valid Parquet, with the same number of rows and bytes."""
        size = file.stat().st_size
        rows = parquet.ParquetFile(file).read()
        changed = self._changed(rows)
        pad = size - _written(file, changed, padding=0)
        assert pad > 0, "the file without its Arrow schema is smaller"
        for padding in range(max(pad - 8, 0), pad + 1):
            if _written(file, changed, padding=padding) == size:
                break
        assert file.stat().st_size == size
        assert parquet.ParquetFile(file).read() != rows

    def _changed(self, rows: pa.Table) -> pa.Table:
        numbers = [
            place
            for place, field in enumerate(rows.schema)
            if pa.types.is_integer(field.type) and rows.column(place).null_count < len(rows)
        ]
        place = self.chance.choice(numbers)
        field, row = rows.schema.field(place), self.chance.randrange(len(rows))
        values: list[Any] = rows.column(place).to_pylist()
        values[row] = (values[row] or 0) + 1
        return rows.set_column(place, field, pa.array(values, field.type))

    def swap(self, file: Path, other: Path) -> None:
        content, its = file.read_bytes(), other.read_bytes()
        file.write_bytes(its)
        other.write_bytes(content)

    def lose(self, file: Path) -> None:
        file.unlink()

    def truncate(self, file: Path) -> None:
        content = file.read_bytes()
        file.write_bytes(content[: self.chance.randrange(len(content))])


def _written(file: Path, rows: pa.Table, *, padding: int) -> int:
    texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]
    with parquet.ParquetWriter(
        file, rows.schema, compression=_COMPRESSION, use_dictionary=texts, store_schema=False
    ) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"p": "p" * padding})
    return file.stat().st_size
