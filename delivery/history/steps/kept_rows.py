"""The comparison of the archive's rows with those still in PostgreSQL, in a whole verify.

The sums in the ledger prove a file unchanged since it was written. Whoever can write both may
change both, and a file of an early export has none. So the rows are compared with their origin as
well, as far as PostgreSQL has them: see `postgres.kept_rows`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from itertools import chain, groupby, pairwise

from delivery.history.archive.fingerprint import Fingerprint
from delivery.history.archive.ledger import File
from delivery.history.archive.losses import FileReport, Files
from delivery.history.job import StepJob
from delivery.history.postgres.kept_checksums import KeptFile, KeptPart
from delivery.history.postgres.kept_rows import KeptRows, KeptRowsReader, NamedRows
from delivery.history.postgres.source import ALL_IDS
from delivery.history.postgres.unarchived_rows import EVER
from delivery.history.postgres.window import open_snapshot
from delivery.history.schemas import ATTEMPTS, DELIVERIES, JOURNAL, MESSAGES, Table

# The tables of a part: attempts are selected by their deliveries.
_TOGETHER = ((DELIVERIES, ATTEMPTS), (MESSAGES,), (JOURNAL,))
# A worker holds 32 bytes of each row of a part, on both sides. Some tens of thousands of rows would
# not be worth the planning of their statements.
_ROWS_A_PART = 500_000


def compare_kept_rows(
    job: StepJob, report: FileReport, files: Files, *, until: datetime | None
) -> None:
    """Compare the sound files with PostgreSQL's rows from before `until`, the watermark.

    `files` are all valid files, and `report` is from `look_into_files`: files not read there are
    not compared. Files with other rows are sound no more.
    """
    parts = [] if until is None else list(_parts(files, report, until=until))
    rows = sum(file.rows for file in chain.from_iterable(report.sound.values()))
    job.progress.doing("comparing the archive with PostgreSQL")
    with open_snapshot(job.conninfo) as seen:
        reader = KeptRowsReader(conninfo=job.conninfo, snapshot=seen.name, archive=job.archive)
        read = job.run_tasks(parts, reader.compare, rows=rows)
    results = [KeptRows.of_json(values) for values in chain.from_iterable(read)]
    equal = sum((Counter(result.equal) for result in results), Counter[str]())
    report.compared = equal.total()
    report.uncompared = rows - equal.total()
    for path, words in _damages(results):
        report.damages[path] = (
            f"{report.damages[path]} {words}" if path in report.damages else words
        )
    report.losses += _losses(results)
    for table, found in report.sound.items():
        report.sound[table] = [file for file in found if file.path not in report.damages]
    report.unproven = sum(
        not file.sha256 and equal[file.path] < file.rows
        for file in chain.from_iterable(report.sound.values())
    )


def _parts(files: Files, report: FileReport, *, until: datetime) -> Iterator[KeptPart]:
    """Divide the archive; together the parts have all times before `until`, and all ids."""
    for tables in _TOGETHER:
        found = sorted(
            chain.from_iterable(files.get(table.name, []) for table in tables),
            key=lambda file: file.day,
        )
        days = list(_days(found))
        begins = [EVER, *(_begin(of_days[0].day) for of_days in days[1:]), until]
        for of_days, (since, end) in zip(days or [[]], pairwise(begins), strict=True):
            sound = [file for file in of_days if file.path not in report.damages]
            part = KeptPart(
                since=since, until=min(end, until), files={}, is_whole=len(sound) == len(of_days)
            )
            yield from _by_ids(part, tables, sound, report.certain)


def _days(files: list[File]) -> Iterator[list[File]]:
    """Yield the files of a day or more, with about as many rows as a part has."""
    found: list[File] = []
    for _, of_day in groupby(files, key=lambda file: file.day):
        found += of_day
        if sum(file.rows for file in found) >= _ROWS_A_PART:
            yield found
            found = []
    if found:
        yield found


def _by_ids(
    part: KeptPart,
    tables: Iterable[Table],
    files: list[File],
    certain: Mapping[str, Fingerprint],
) -> Iterator[KeptPart]:
    """Divide a part with many rows by ids, where files begin."""
    bounds, rows = [ALL_IDS[0]], 0
    for file in sorted(files, key=lambda file: file.first_id):
        if rows >= _ROWS_A_PART and file.first_id > bounds[-1]:
            bounds.append(file.first_id)
            rows = 0
        rows += file.rows
    for first, last in pairwise([*bounds, ALL_IDS[1]]):
        inside = {
            table.name: [
                KeptFile(
                    path=file.path,
                    first_id=file.first_id,
                    last_id=file.last_id,
                    certain=certain.get(file.path),
                )
                for file in files
                if file.table == table.name and file.first_id < last and file.last_id >= first
            ]
            for table in tables
        }
        yield replace(part, first=first, last=last, files=inside)


def _begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _damages(results: Iterable[KeptRows]) -> Iterator[tuple[str, str]]:
    for path, rows, _ in _rows_by_path(results, "different"):
        yield path, f"{path} of the archive has other values than PostgreSQL in {rows}."
    for path, rows, table in _rows_by_path(results, "added"):
        whose = "them" if table == DELIVERIES.name else "their deliveries"
        yield (
            path,
            f"{path} of the archive has {rows}, which PostgreSQL has not, though it has {whose}.",
        )


def _losses(results: Iterable[KeptRows]) -> Iterator[str]:
    for path, rows, table in _rows_by_path(results, "absent"):
        where = f"{path} of the archive lacks" if path else f"No file of {table} has"
        yield f"{where} {rows}, which PostgreSQL has."


def _rows_by_path(results: Iterable[KeptRows], kind: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, rows in words, and table."""
    for result in results:
        found: Mapping[str, NamedRows] = getattr(result, kind)
        for path, rows in found.items():
            yield path, _in_words(result.table, rows), result.table


def _in_words(table: str, rows: NamedRows) -> str:
    more = f" and {rows.count - len(rows.ids):,} more" if rows.count > len(rows.ids) else ""
    whose = "of deliveries " if table == ATTEMPTS.name else ""
    return f"{rows.count:,} rows of {table} ({whose}{', '.join(map(str, rows.ids))}{more})"
