"""Export: copies settled deliveries to the archive, chunk by chunk, each verified before it counts.

Each chunk is an interval in a snapshot (see `window`): Spark's workers write it to a staging
folder, it is read back, compared with PostgreSQL by count and checksum, and only then moved into
place (see `chunk`). Few rows are written by this process, without Spark, unless Spark is a cluster.
After a kill at any point the next run continues, with nothing lost and nothing twice. One at a time
in the whole installation: the caller holds the lock of the export.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

from delivery.database.statements import statement
from delivery.history.archive import chunk as chunks
from delivery.history.archive.file_sums import FileSums, sums_by_path, total_of
from delivery.history.archive.fingerprint import Fingerprint
from delivery.history.archive.identity import claim_archive
from delivery.history.job import StepJob
from delivery.history.postgres.division import divided
from delivery.history.postgres.extract import (
    Extracted,
    Extraction,
    Numbered,
    ReadBack,
)
from delivery.history.postgres.names import Names
from delivery.history.postgres.source import Piece
from delivery.history.postgres.window import (
    LAG,
    ROWS,
    ExportWindow,
    is_certain,
    next_window,
    open_snapshot,
    read_horizon,
)
from delivery.history.schemas import TABLES
from delivery.history.spark.workers import dealt_shares
from delivery.history.steps import compaction


class MismatchError(RuntimeError):
    """The written rows differ from PostgreSQL's; none of them counts. The message has the table."""


def export_history(job: StepJob, *, rows: int = ROWS, lag: timedelta = LAG) -> dict[str, Any]:
    """Archive everything certain by now.

    Returns `rows` by table, the numbers of `chunks` and `compacted` files, and `until`. `waits_for`
    is the process of a PostgreSQL transaction which keeps newer rows from being certain, if any.
    """
    claim_archive(job.database, job.archive.url)
    chunks.recover_chunks(job.database, job.archive)
    now = read_horizon(job.database, lag=lag)
    exported = Counter[str]({table.name: 0 for table in TABLES})
    count = 0
    while not (window := next_window(job.database, end=now.until, rows=rows)).is_empty:
        counts = _export_window(job, window)
        if counts is None:
            break
        exported.update(counts)
        count += bool(counts)
        job.progress.advance(exported.total(), None)
    return {
        "rows": dict(exported),
        "chunks": count,
        "compacted": compaction.compact_files(job),
        "until": now.until.isoformat(),
        "waits_for": now.waits_for,
    }


def _export_window(job: StepJob, window: ExportWindow) -> dict[str, int] | None:
    """Archive an interval; return the number of rows by table.

    An empty interval leaves no chunk, and returns an empty mapping. None means: the interval is no
    longer certain; the next export continues from here.
    """
    job.progress.doing(f"counting events until {window.until:%Y-%m-%d %H:%M:%S}")
    chunk = chunks.begin_chunk(
        job.database, kind="EXPORT", run_id=job.run_id, since=window.since, until=window.until
    )
    if not is_certain(job.database, window):
        chunks.forget_chunk(job.database, chunk)
        return None
    with open_snapshot(job.conninfo) as seen:
        pieces, counted = divided(seen, window)
        if not pieces:
            job.database.execute(statement("archive_skip"), {"chunk": chunk.id})
            return {}
        names = Names.of_rows(seen.connection.execute(statement("subscription_names")).fetchall())
        extraction = Extraction(
            conninfo=job.conninfo, snapshot=seen.name, names=names, archive=job.archive, chunk=chunk
        )
        extracted = _extracted(job, extraction, pieces, rows=counted.total())
        written = [file for extract in extracted for file in extract.files]
        sums = _compared(job, names, extracted, counted)
    counts = {
        table: sum(file.rows for file in written if file.table == table)
        for table in dict.fromkeys(extract.table for extract in extracted)
    }
    content = chunks.Content(written=written, sums=sums, snapshot=seen.visible, counts=counts)
    chunks.add_to_archive(job.database, job.archive, chunk, content)
    return counts


def _extracted(
    job: StepJob, extraction: Extraction, pieces: Sequence[Piece], *, rows: int
) -> list[Extracted]:
    """Have workers write the pieces into the staging folder; return the results.

    `rows` are those without attempts.
    """
    job.progress.doing(f"exporting events until {extraction.chunk.until:%Y-%m-%d %H:%M:%S}")
    numbered = [Numbered(number, piece) for number, piece in enumerate(pieces)]
    extracted = job.run_tasks(numbered, extraction.write, rows=rows)
    return [Extracted.of_json(values) for values in chain.from_iterable(extracted)]


def _compared(
    job: StepJob, names: Names, extracted: Sequence[Extracted], counted: Counter[str]
) -> dict[str, FileSums]:
    """Read the written files back, return their sums by path; MismatchError if they differ.

    They must equal both the rows `counted` by PostgreSQL and those sent: none may be lost, either.
    """
    rows = counted.total()
    counted = counted + sum(
        (Counter({extract.table: extract.counted}) for extract in extracted), Counter()
    )
    files = sorted(
        (file for extract in extracted for file in extract.files), key=lambda file: -file.bytes
    )
    staged = dealt_shares([(file.table, file.staged) for file in files])
    job.progress.doing(f"comparing {sum(file.rows for file in files):,} rows with PostgreSQL")
    read = job.run_tasks(staged, ReadBack(job.archive, names).sums, rows=rows)
    sums = sums_by_path(chain.from_iterable(read))
    for table in dict.fromkeys(extract.table for extract in extracted):
        of_table = [extract for extract in extracted if extract.table == table]
        sent = sum((extract.sent for extract in of_table), Fingerprint())
        kept = total_of(sums[file.staged] for extract in of_table for file in extract.files)
        stored = counted[table]
        if sent.rows != stored or kept != sent:
            raise MismatchError(
                f"Of {table}, PostgreSQL has {stored:,} rows, it sent {sent.rows:,}, "
                f"and {kept.rows:,} were written"
                f"{'; their checksums differ' if kept.rows == sent.rows == stored else ''}. "
                "Nothing of it counts; run the export again."
            )
    return sums
