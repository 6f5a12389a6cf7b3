"""A small archive for tests, as the export leaves it: Parquet files and their ledger.

Tests pass only the columns that matter. The others follow from the id: message n is published n
seconds after `AT`; delivery n belongs to message n, was tried 10 ms later and settled 20 ms later;
and every message was accepted after the one before it.

    write(tmp_path, messages=[message(1)], deliveries=[delivery(1)], attempts=[attempt(1)])
    with job(tmp_path, spark=spark) as given:
        assert rollup(given) == …
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from delivery.database.connections import connection_parameters
from delivery.history.archive.archive import Archive
from delivery.history.archive.file_sums import read_sums
from delivery.history.job import StepJob, Stopped
from delivery.history.schemas import ATTEMPTS, BY_NAME, DAY, DELIVERIES, JOURNAL, MESSAGES, Table
from delivery.models import ArchiveChunk, Archived, ArchiveFile, ChunkState

Row = dict[str, Any]

AT = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
_parts = itertools.count(1)


def seconds(number: float) -> datetime:
    """Return the moment so many seconds after `AT`."""
    return AT + timedelta(seconds=number)


def message(id: int, **fields: Any) -> Row:
    return {
        "id": id,
        "published_at": seconds(id),
        "event_type": "Test.Event",
        "publisher": "test",
        "headers": '{"content-type": "application/json"}',
        "content_type": "application/json",
        "body": b'{"number": 1}',
        "destination": "",
        "edited_from": None,
        "owed": 1,
        **_accepted(id),
    } | _known(MESSAGES, fields)


def delivery(id: int, **fields: Any) -> Row:
    """Return a DELIVERED delivery of a TOPIC subscriber; `message_id` is its own id by default."""
    about: int = fields.get("message_id", id)
    published_at = fields.get("published_at", seconds(about))
    return {
        "id": id,
        "settled_at": published_at + timedelta(milliseconds=20),
        "status": "DELIVERED",
        "message_id": about,
        "published_at": published_at,
        "event_type": "Test.Event",
        "kind": "TOPIC",
        "subscriber": "subscriber1",
        "subscriber_id": 1,
        "subscription": "subscription1",
        "subscription_id": 1,
        "mode": "PUSH",
        "processing": "SERIAL",
        "endpoint": "https://receiver.example/hook",
        "queue_group": None,
        "callback_id": None,
        "replay_id": None,
        "attempts": 1,
        "attempts_before": 0,
        "settled_before": 0,
        "redelivery": "",
        "reason": "",
        "receive_count": 0,
        "body_bytes": 13,
        "output_sha256": None,
        **_accepted(about),
    } | _known(DELIVERIES, fields)


def attempt(delivery_id: int, number: int = 1, **fields: Any) -> Row:
    """Return a successful attempt of a delivery made by `delivery(delivery_id)`."""
    published_at = seconds(fields.get("message_id", delivery_id))
    return {
        "delivery_id": delivery_id,
        "number": number,
        "settled_at": published_at + timedelta(milliseconds=20),
        "message_id": delivery_id,
        "subscription_id": 1,
        "subscriber": "subscriber1",
        "event_type": "Test.Event",
        "started_at": published_at + timedelta(milliseconds=10),
        "duration_ms": 5,
        "outcome": "SUCCESS",
        "status_code": 200,
        "error": "",
        "excerpt": b"",
    } | _known(ATTEMPTS, fields)


def entry(id: int, kind: str, **fields: Any) -> Row:
    """Return an entry of the journal."""
    return {
        "id": id,
        "at": seconds(id),
        "kind": kind,
        "text": kind,
        "actor": "",
        "message_id": None,
        "delivery_id": None,
        "subscription_id": None,
        "lane_id": None,
        "subscriber_id": None,
    } | _known(JOURNAL, fields)


def _accepted(message_id: int) -> Row:
    # One after the other: all earlier transactions had ended.
    return {"transaction_id": 1000 + message_id, "seen_before": 1000 + message_id}


def _known(table: Table, fields: Row) -> Row:
    unknown = fields.keys() - set(table.names)
    assert not unknown, f"{table.name} has no {unknown}"
    return fields


def frame(spark: SparkSession, table: Table, rows: Sequence[Row]) -> DataFrame:
    """Return the rows as a frame, as it would come from the archive."""
    columns = [[row[name] for name in table.names] for row in rows]
    return spark.createDataFrame([tuple(values) for values in columns], table.spark)


def write(
    url: Path | str,
    *,
    until: datetime | None = None,
    messages: Sequence[Row] = (),
    deliveries: Sequence[Row] = (),
    attempts: Sequence[Row] = (),
    journal: Sequence[Row] = (),
) -> ArchiveChunk:
    """Export these rows and return the chunk: DONE, not rolled up.

    `until`, the new watermark, is just after the last of them by default.
    """
    rows = {
        "messages": messages,
        "deliveries": deliveries,
        "attempts": attempts,
        "journal": journal,
    }
    times = [row[BY_NAME[name].at] for name, found in rows.items() for row in found]
    until = until or max(times, default=AT) + timedelta(milliseconds=1)
    chunk = ArchiveChunk.objects.create(
        state=ChunkState.DONE,
        run_id=1,
        since=min([*times, until]),
        until=until,
        counts={name: len(found) for name, found in rows.items()},
        ended_at=timezone.now(),
    )
    for name, found in rows.items():
        _write_days(Archive(str(url)), BY_NAME[name], found, chunk)
    Archived.objects.update_or_create(pk=1, defaults={"until": until})
    return chunk


def _write_days(archive: Archive, table: Table, rows: Sequence[Row], chunk: ArchiveChunk) -> None:
    days: dict[date, list[Row]] = {}
    for row in rows:
        days.setdefault(row[table.at].date(), []).append(row)
    for day, found in days.items():
        _write_file(
            archive,
            table,
            sorted(found, key=lambda row: [row[name] for name in table.key]),
            chunk,
            day,
        )


def _write_file(
    archive: Archive, table: Table, rows: list[Row], chunk: ArchiveChunk, day: date
) -> None:
    path = f"{table.name}/{DAY}={day}/{chunk.pk}-{next(_parts)}.parquet"
    archive.files.create_dir(archive.path(f"{table.name}/{DAY}={day}"), recursive=True)
    parquet.write_table(
        pa.Table.from_pylist(rows, schema=table.arrow), archive.path(path), filesystem=archive.files
    )
    ids = [row[table.key[0]] for row in rows]
    sums = read_sums(archive, table, path)
    assert sums.bytes is not None
    ArchiveFile.objects.create(
        chunk=chunk,
        table=table.name,
        day=day,
        path=path,
        rows=len(rows),
        bytes=sums.bytes,
        first_id=min(ids),
        last_id=max(ids),
        sha256=sums.sha256,
        checksum=sums.fingerprint.checksum_text,
    )


@dataclass(slots=True)
class RecordedProgress:
    """Progress that records its calls, and runs a function once at a given report."""

    texts: list[str] = field(default_factory=list)
    rows: list[tuple[int, int | None]] = field(default_factory=list)
    stop_at: str | None = None
    error: BaseException | None = None
    _acts: list[tuple[str, Callable[[], None]]] = field(default_factory=list)
    _left: int | None = None

    def when(self, text: str, act: Callable[[], None]) -> None:
        """Call `act` when the step reports that text."""
        self._acts.append((text, act))

    def stop_after(self, count: int | None) -> None:
        """Raise Stopped after so many more reports of progress; None: never again."""
        self._left = count

    def doing(self, text: str) -> None:
        self.texts.append(text)
        if self._left is not None:
            if not self._left:
                raise Stopped
            self._left -= 1
        for act in [act for act in self._acts if act[0] in text]:
            self._acts.remove(act)
            act[1]()
        if self.stop_at is not None and self.stop_at in text and self.error is not None:
            raise self.error

    def advance(self, done: int, count: int | None) -> None:
        self.rows.append((done, count))


@contextmanager
def job(
    url: Path | str,
    *,
    spark: SparkSession,
    run_id: int = 1,
    progress: RecordedProgress | None = None,
) -> Iterator[StepJob]:
    """Yield a job with its own connection; for transactional tests, so that it sees their rows."""
    conninfo = make_conninfo(**connection_parameters())
    with psycopg.connect(conninfo, autocommit=True) as database:
        yield StepJob(
            run_id=run_id,
            database=database,
            conninfo=conninfo,
            archive=Archive(str(url)),
            progress=progress or RecordedProgress(),
            start=lambda: spark,
        )
