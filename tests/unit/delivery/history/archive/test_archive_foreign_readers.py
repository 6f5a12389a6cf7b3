"""Any Parquet reader can read the archive: Arrow and DuckDB find exactly the rows of PostgreSQL."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from pyarrow import dataset, parquet
from pyspark.sql import SparkSession

from delivery.database.connections import connection_parameters
from delivery.database.statements import statement
from delivery.history.archive import ledger
from delivery.history.archive.identity import IDENTITY
from delivery.history.job import StepJob
from delivery.history.postgres.source import Piece
from delivery.history.schemas import DAY, DELIVERIES, MESSAGES, TABLES, Table
from delivery.history.steps.compaction import MANY
from delivery.history.steps.export import export_history
from delivery.models import JournalEntry, JournalKind, Message
from delivery.states import OPEN, Status
from subscriptions.models import Kind, Mode
from tests.support import factories
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.commands import SECONDS, kill_where_it_writes

Rows = list[dict[str, Any]]

_OF_MESSAGES = (
    "SELECT id AS message_id, published_at, octet_length(body) AS body_bytes, transaction_id, "
    "seen_before FROM delivery_message"
)

pytestmark = pytest.mark.django_db(transaction=True)


def by_arrow(archive: Path, table: Table) -> Rows:
    found = dataset.dataset(
        archive / table.name,
        partitioning=dataset.HivePartitioning(pa.schema([(DAY, pa.date32())])),
        schema=pa.schema([*table.arrow, (DAY, pa.date32())]),
    )
    rows: Rows = found.to_table().sort_by([(name, "ascending") for name in table.key]).to_pylist()
    return rows


def by_duckdb(archive: Path, table: Table) -> Rows:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # Folder and names are ours.
        found = connection.execute(
            f"SELECT * FROM read_parquet('{archive}/{table.name}/**/*.parquet', "  # noqa: S608
            f"hive_partitioning = true, union_by_name = true) ORDER BY {', '.join(table.key)}"
        ).to_arrow_table()
    rows: Rows = found.to_pylist()
    return rows


READERS = (by_arrow, by_duckdb)


def by_postgresql(table: Table) -> Rows:
    """Return the rows up to the watermark, with the day of each."""
    with psycopg.connect(
        make_conninfo(**connection_parameters()), row_factory=dict_row
    ) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        archived_rows = connection.execute("SELECT until FROM delivery_archived").fetchone()
        assert archived_rows is not None
        (until,) = archived_rows.values()
        piece = Piece(table=table.name, since=datetime(2000, 1, 1, tzinfo=UTC), until=until)
        # The names and the statements are ours.
        select = f"SELECT {', '.join(table.names)} FROM ({piece.select}) AS found"  # noqa: S608
        if table is DELIVERIES:
            select += f" JOIN ({_OF_MESSAGES}) AS message USING (message_id)"
        if table.called:
            select += f" JOIN ({statement('subscription_names')}) AS named USING (subscription_id)"
        rows = connection.execute(f"{select} ORDER BY {', '.join(table.key)}".encode()).fetchall()
    return [row | {DAY: row[table.at].date()} for row in rows]


def check(archive: Path, tables: Sequence[Table] = TABLES) -> None:
    """Check that every reader finds the rows of PostgreSQL."""
    for table in tables:
        expected = by_postgresql(table)
        for read in READERS:
            assert read(archive, table) == expected


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def job(archive: Path, spark: SparkSession) -> Iterator[StepJob]:
    with archived.job(archive, spark=spark) as given:
        yield given


@pytest.fixture
def varied_rows() -> None:
    """Create all kinds, over days: each status, each way to deliver, odd bytes and texts."""
    now = timezone.now()
    pushed = factories.subscription('Zoë\'s, "quoted"')
    fetched = factories.subscription(mode=Mode.PULL)
    queue = factories.event_type(kind=Kind.QUEUE)
    for days, status in enumerate(Status, start=1):
        message = factories.message(
            bytes(range(256)),
            event_type=pushed.event_type,
            published_at=now - timedelta(days=days, microseconds=1),
            headers={"content-type": "a/b", "x-name": 'Zoë, \\ "☃"\t'},
            destination="somebody" if days % 2 else "",
        )
        factories.delivery(status, subscription=pushed, message=message, reason="a\nb")
    last = Message.objects.latest("pk")
    factories.message(
        b"", publisher=None, edited_from=last, published_at=now - timedelta(days=1), owed=0
    )
    factories.delivery(
        Status.DELIVERED,
        subscription=fetched,
        message=factories.message(
            event_type=fetched.event_type, published_at=now - timedelta(hours=30)
        ),
        receive_count=3,
    )
    redundant = factories.subscription(event_type=queue)
    done = factories.delivery(
        Status.REDUNDANT,
        subscription=redundant,
        message=factories.message(event_type=queue, published_at=now - timedelta(hours=2)),
        queue_group=0,
    )
    entry = JournalEntry.objects.create(
        kind=JournalKind.FAILED, text="it\nfailed", delivery_id=done.pk
    )
    JournalEntry.objects.filter(pk=entry.pk).update(at=now - timedelta(days=2))


class TestReadArchive:
    @pytest.mark.usefixtures("varied_rows")
    def test_equals_the_rows_of_postgresql(self, job: StepJob, archive: Path) -> None:
        export_history(job)
        check(archive)
        assert all(by_arrow(archive, table) for table in TABLES)
        assert {row["status"] for row in by_arrow(archive, DELIVERIES)} == set(Status.values) - set(
            OPEN
        )

    @pytest.mark.slow
    def test_is_the_same_after_compaction(self, job: StepJob, archive: Path) -> None:
        noon = (timezone.now() - timedelta(days=1)).replace(hour=12)
        for minute in range(2 * MANY):
            factories.message(published_at=noon.replace(minute=minute))
        assert export_history(job, rows=1)["compacted"] >= MANY
        assert len(list((archive / MESSAGES.name).rglob("*.parquet"))) == 1
        check(archive, [MESSAGES])


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.usefixtures("varied_rows")
class TestKilled:
    # The first write of verified files, and the one that publishes them.
    @pytest.mark.parametrize(
        ("table", "is_visible"),
        [
            ("delivery_archivefile", False),
            ("delivery_archived", True),
        ],
    )
    def test_and_rerun_loses_duplicates_or_orphans_no_row(
        self, job: StepJob, archive: Path, table: str, is_visible: bool
    ) -> None:
        kill_where_it_writes(table, "export", archive=archive)
        assert bool(list((archive / ".staging").rglob("*.parquet"))) != is_visible
        assert len(_messages(archive)) == (Message.objects.count() if is_visible else 0)
        export_history(job)
        check(archive)
        counted = {IDENTITY} | {file.path for known in TABLES for file in _ledger(known)}
        assert counted == {
            str(file.relative_to(archive)) for file in archive.rglob("*") if file.is_file()
        }


def test_a_column_that_was_added_later_is_null_in_older_files(
    job: StepJob, archive: Path, spark: SparkSession
) -> None:
    old = factories.message(published_at=timezone.now() - timedelta(days=3), owed=7)
    export_history(job)
    (file,) = (archive / MESSAGES.name).rglob("*.parquet")
    # As written by an export before the column existed.
    parquet.write_table(parquet.ParquetFile(file).read().drop_columns(["owed"]), file)
    new = factories.message(published_at=timezone.now() - timedelta(days=1), owed=3)
    # Move the watermark back behind the new message.
    job.database.execute("UPDATE delivery_archived SET until = until - interval '2 days'")
    export_history(job)
    for read in READERS:
        assert [(row["id"], row["owed"]) for row in read(archive, MESSAGES)] == [
            (old.pk, None),
            (new.pk, 3),
        ]
    frame = job.read_files(MESSAGES, ledger.files(job.database, MESSAGES.name)).orderBy("id")
    assert [(row.id, row.owed) for row in frame.collect()] == [(old.pk, None), (new.pk, 3)]


def _messages(archive: Path) -> Rows:
    return by_arrow(archive, MESSAGES) if (archive / MESSAGES.name).exists() else []


def _ledger(table: Table) -> list[ledger.File]:
    with psycopg.connect(make_conninfo(**connection_parameters())) as connection:
        return ledger.files(connection, table.name)
