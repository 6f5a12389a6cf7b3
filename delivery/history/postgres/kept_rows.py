"""Rows still in PostgreSQL, compared with the archive's rows of the same interval.

PostgreSQL sends the id and the checksum of each row the export would select now: the export's
statements give the same rows at any time, except rows removed by retention and settlements amended
by a late attempt since. So

    a checksum of PostgreSQL that no file has    a row of the archive was changed, or removed
    a checksum of a file that PostgreSQL lacks   retention removed the row; or it was added, if
                                                 PostgreSQL has its delivery

The checksums are of `Table.certain` columns. The others may differ without a fault.

Usually all rows are equal, and so are their fingerprints: then the files, which were read before
for their sums, are not read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
from pyarrow import compute

from delivery.history.archive.archive import Archive
from delivery.history.archive.fingerprint import (
    CHECKSUM,
    NO_ROWS,
    Fingerprint,
    fingerprint_of,
    row_checksums,
)
from delivery.history.postgres.kept_checksums import (
    ROWS,
    KeptFile,
    KeptPart,
    kept_checksums,
    those_still_there,
)
from delivery.history.postgres.source import Read, open_reader
from delivery.history.schemas import ATTEMPTS, BY_NAME, DELIVERIES, Table

# A worker names so many rows of a file.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRows:
    """A number of rows, and the first ids of them."""

    count: int
    ids: list[int]

    @classmethod
    def of_ids(cls, ids: Any) -> Self:
        return cls(count=len(ids), ids=ids.slice(0, _MOST_NAMED).to_pylist())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRows:
    """The result of a part for a table, by path.

    `equal` counts rows in both. `different` rows have other values than PostgreSQL's, `added` rows
    are only in the file, though PostgreSQL has their delivery. `absent` rows are only in
    PostgreSQL; their path, of a file with neighbouring ids, is empty if there is none.
    """

    table: str
    equal: dict[str, int] = field(default_factory=dict)
    different: dict[str, NamedRows] = field(default_factory=dict)
    added: dict[str, NamedRows] = field(default_factory=dict)
    absent: dict[str, NamedRows] = field(default_factory=dict)

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Self:
        named = {
            kind: {path: NamedRows(**rows) for path, rows in values[kind].items()}
            for kind in ("different", "added", "absent")
        }
        return cls(table=values["table"], equal=values["equal"], **named)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRowsReader:
    """Compares parts in a snapshot of PostgreSQL; the archive's files do not change meanwhile."""

    conninfo: str = field(repr=False)
    snapshot: str
    archive: Archive

    def compare(self, part: KeptPart) -> list[KeptRows]:
        """Compare the tables of a part."""
        with open_reader(conninfo=self.conninfo, snapshot=self.snapshot) as read:
            kept = kept_checksums(read, part)
            return [
                self._compared(read, part, BY_NAME[name], rows)
                for name, rows in kept.items()
                if len(rows)
            ]

    def _compared(self, read: Read, part: KeptPart, table: Table, kept: pa.Table) -> KeptRows:
        files = part.files.get(table.name, [])
        found: dict[str, pa.Table] = {}
        sums: dict[str, Fingerprint] = {}
        for place, file in enumerate(files):
            if file.certain is None:
                # It has not all columns: the rows cannot be compared as they are.
                return KeptRows(table=table.name)
            if part.has_all_of(file):
                sums[file.path] = file.certain
            else:
                found[file.path] = self._rows(part, table, files, place)
                sums[file.path] = fingerprint_of(found[file.path][CHECKSUM])
        if fingerprint_of(kept[CHECKSUM]) == sum(sums.values(), NO_ROWS):
            return KeptRows(table=table.name, equal={path: sums[path].rows for path in sums})
        for place, file in enumerate(files):
            if file.path not in found:
                found[file.path] = self._rows(part, table, files, place)
        archived = pa.concat_tables([_ARCHIVED.empty_table(), *found.values()]).combine_chunks()
        is_archived = compute.is_in(kept[CHECKSUM], value_set=archived[CHECKSUM])
        is_kept = compute.is_in(archived[CHECKSUM], value_set=kept[CHECKSUM])
        missing = compute.unique(kept.filter(compute.invert(is_archived))["id"])
        rest = archived.filter(compute.invert(is_kept))
        is_different = compute.is_in(rest["id"], value_set=missing)
        others = rest.filter(compute.invert(is_different))
        absent = missing.filter(compute.invert(compute.is_in(missing, value_set=rest["id"])))
        return KeptRows(
            table=table.name,
            equal=_counts(archived.filter(is_kept), files),
            different=_by_path(rest.filter(is_different), files),
            added=_by_path(_added(read, table, others), files),
            absent=_beside(absent, files) if part.is_whole else {},
        )

    def _rows(self, part: KeptPart, table: Table, files: list[KeptFile], place: int) -> pa.Table:
        """Return _ARCHIVED of the file at this place: the rows with ids of the part."""
        columns, key = table.certain, table.key[0]
        file, batches = files[place], []
        is_inside = part.has_all_of(file)
        names = [column.name for column in columns]
        for rows in self.archive.rows(table, file.path, names):
            batch = rows if is_inside else rows.filter(_is_between(rows.column(key), part))
            checksums = row_checksums(columns, batch).cast(pa.int64(), safe=False)
            values = [batch.column(key), checksums, pa.repeat(pa.scalar(place), len(batch))]
            batches.append(pa.RecordBatch.from_arrays(values, schema=_ARCHIVED))
        return pa.Table.from_batches(batches, _ARCHIVED)


_ARCHIVED = pa.schema([*ROWS, pa.field("file", pa.int64())])


def _is_between(ids: pa.Array, part: KeptPart) -> pa.Array:
    return compute.and_(
        compute.greater_equal(ids, pa.scalar(part.first, pa.int64())),
        compute.less(ids, pa.scalar(part.last, pa.int64())),
    )


def _added(read: Read, table: Table, rows: pa.Table) -> pa.Table:
    """Return the archive's rows which PostgreSQL never had."""
    if table not in (DELIVERIES, ATTEMPTS):
        return rows.slice(0, 0)
    return rows.filter(compute.is_in(rows["id"], value_set=those_still_there(read, rows["id"])))


def _counts(rows: pa.Table, files: Sequence[KeptFile]) -> dict[str, int]:
    return {
        files[count["values"]].path: count["counts"]
        for count in compute.value_counts(rows["file"]).to_pylist()
    }


def _by_path(rows: pa.Table, files: Sequence[KeptFile]) -> dict[str, NamedRows]:
    return {
        files[place].path: NamedRows.of_ids(rows.filter(compute.equal(rows["file"], place))["id"])
        for place in compute.unique(rows["file"]).to_pylist()
    }


def _beside(ids: pa.Array, files: Sequence[KeptFile]) -> dict[str, NamedRows]:
    """Return rows missing in all files by the path of a file with smaller and larger ids."""
    found: dict[str, NamedRows] = {}
    for file in files:
        is_inside = compute.and_(
            compute.greater_equal(ids, file.first_id), compute.less_equal(ids, file.last_id)
        )
        if compute.any(is_inside).as_py():
            found[file.path] = NamedRows.of_ids(ids.filter(is_inside))
            ids = ids.filter(compute.invert(is_inside))
    return found | ({"": NamedRows.of_ids(ids)} if len(ids) else {})
