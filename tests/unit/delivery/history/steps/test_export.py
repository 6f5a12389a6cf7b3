"""The export: final rows are archived once, exactly as PostgreSQL has them."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from pyarrow import parquet
from pyspark.sql import SparkSession

from delivery.database.connections import connection_parameters
from delivery.history.archive.ledger import files
from delivery.history.job import StepJob, Stopped
from delivery.history.job import open_job as whole_job
from delivery.history.schemas import ATTEMPTS, DELIVERIES, JOURNAL, MESSAGES, TABLES
from delivery.history.spark.session import Spark
from delivery.history.steps.export import export_history
from delivery.lifecycle import transitions
from delivery.models import ArchiveChunk, Delivery, JournalEntry, JournalKind, ScriptOutput
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.exporting import AT_ONCE, rows, settled, visible

pytestmark = pytest.mark.django_db(transaction=True)


def _refuse() -> SparkSession:
    raise AssertionError("it started Spark")


class TestArchivedRows:
    def test_settled_deliveries_with_their_attempts_and_all_messages(self, job: StepJob) -> None:
        done, open_one = settled(), settled(Status.PENDING)
        result = export_history(job)
        assert [row["id"] for row in rows(job, MESSAGES)] == [done.message_id, open_one.message_id]
        (found,) = rows(job, DELIVERIES)
        assert (found["id"], found["status"], found["subscriber"]) == (
            done.pk,
            "DELIVERED",
            done.subscription.subscriber.name,
        )
        assert [row["delivery_id"] for row in rows(job, ATTEMPTS)] == [done.pk]
        assert result["rows"] == {"messages": 2, "deliveries": 1, "attempts": 1, "journal": 0}

    def test_few_rows_are_archived_without_spark(
        self, job: StepJob, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("delivery.history.job.FEW_ROWS", 3)
        job.is_local, start = True, job.start
        job.start = _refuse
        first, second = settled(), settled()
        with pytest.raises(AssertionError, match="it started Spark"):
            export_history(job)
        monkeypatch.setattr("delivery.history.job.FEW_ROWS", 4)
        assert export_history(job)["rows"]["attempts"] == 2
        job.start = start
        assert [row["id"] for row in rows(job, DELIVERIES)] == [first.pk, second.pk]

    def test_each_column_is_as_it_was_stored(self, job: StepJob) -> None:
        body = bytes(range(256)) * 5
        published_at = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
        message = factories.message(
            body, published_at=published_at, headers={"x-name": "Zoë \u0001 ☃"}, content_type="a/b"
        )
        export_history(job)
        (found,) = rows(job, MESSAGES)
        assert found["body"] == body
        assert found["published_at"].replace(tzinfo=UTC) == published_at
        assert found["headers"] == '{"x-name": "Zoë \\u0001 ☃"}'
        assert (found["id"], found["content_type"], found["publisher"]) == (
            message.pk,
            "a/b",
            str(message.publisher),
        )

    def test_later_settlements_are_in_the_next_export(self, job: StepJob) -> None:
        delivery = settled(Status.PENDING)
        export_history(job, lag=AT_ONCE)
        transitions.cancel_deliveries([delivery.pk], actor="anna")
        result = export_history(job, lag=AT_ONCE)
        assert result["rows"]["deliveries"] == 1
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["CANCELLED"]
        assert [row["kind"] for row in rows(job, JOURNAL)] == ["CANCELLED"]

    @pytest.mark.slow
    def test_the_output_of_a_script_is_known_by_its_hash(self, job: StepJob) -> None:
        made, later, own = settled(), settled(), settled()
        for delivery, body, days in ((made, b"made", 2), (later, b"later", 0), (own, None, 2)):
            output = ScriptOutput.objects.create(delivery=delivery, script_version=1, body=body)
            made_at = timezone.now() - timedelta(days=days)
            ScriptOutput.objects.filter(pk=output.pk).update(made_at=made_at)
        export_history(job)
        found = {row["id"]: row["output_sha256"] for row in rows(job, DELIVERIES)}
        assert found == {made.pk: sha256(b"made").hexdigest(), later.pk: None, own.pk: None}

    @pytest.mark.slow
    def test_the_journal_names_the_subscription_of_a_delivery(self, job: StepJob) -> None:
        settled()
        delivery = settled()
        for id in (delivery.pk, None):
            JournalEntry.objects.create(kind=JournalKind.CANCELLED, text="by hand", delivery_id=id)
        export_history(job, lag=AT_ONCE)
        named = [(row["delivery_id"], row["subscription_id"]) for row in rows(job, JOURNAL)]
        assert named == [(delivery.pk, delivery.subscription_id), (None, None)]

    @pytest.mark.slow
    def test_an_export_in_parts_gives_the_same_rows(
        self, job: StepJob, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("delivery.history.postgres.division._ROWS_A_PIECE", 2)
        monkeypatch.setattr("delivery.history.postgres.division._SHARE", 1)
        # One id far from the others: pieces have equal numbers of rows, not equal ranges of ids.
        far = factories.message(pk=10**9, published_at=timezone.now() - timedelta(days=1))
        ids = [*(settled().pk for _ in range(6)), settled(message=far).pk]
        export_history(job)
        assert [row["id"] for row in rows(job, DELIVERIES)] == ids
        assert [row["delivery_id"] for row in rows(job, ATTEMPTS)] == ids
        pieces = [file.rows for file in files(job.database, DELIVERIES.name)]
        assert sorted(pieces) == [1, 2, 2, 2]

    def test_a_file_is_in_the_order_of_its_key(self, job: StepJob, tmp_path: Path) -> None:
        noon = (timezone.now() - timedelta(days=2)).replace(hour=12, minute=0)
        # Neither in the order of storing nor of settling.
        messages = [factories.message(published_at=noon) for _ in range(3)]
        ids = [
            settled(message=messages[place], settled_at=noon + timedelta(hours=hours)).pk
            for place, hours in ((2, 2), (1, 3), (0, 1))
        ]
        export_history(job)
        paths = [path for path in visible(tmp_path) if path.startswith(DELIVERIES.name)]
        (found,) = (parquet.read_table(tmp_path / path, partitioning=None) for path in paths)
        assert found["id"].to_pylist() == sorted(ids)

    def test_days_are_utc_days(self, job: StepJob, tmp_path: Path) -> None:
        factories.message(published_at=datetime(2026, 3, 1, 0, 0, tzinfo=UTC))
        factories.message(
            published_at=datetime(2026, 3, 1, 0, 0, tzinfo=UTC) - timedelta(microseconds=1)
        )
        export_history(job)
        assert [path.split("/")[1] for path in visible(tmp_path)] == [
            "day=2026-02-28",
            "day=2026-03-01",
        ]

    @pytest.mark.slow
    def test_a_folder_of_any_name_is_read_by_spark_too(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        message = factories.message(published_at=timezone.now() - timedelta(days=1))
        with archived.job(tmp_path / "Inturn's 100 % ä", spark=spark) as given:
            export_history(given)
            assert [row["id"] for row in rows(given, MESSAGES)] == [message.pk]

    @pytest.mark.slow
    def test_a_url_is_as_good_as_a_folder(self, tmp_path: Path, spark: SparkSession) -> None:
        message = factories.message(published_at=timezone.now() - timedelta(days=1))
        with archived.job(f"file://{tmp_path}/archive", spark=spark) as given:
            export_history(given)
            assert [row["id"] for row in rows(given, MESSAGES)] == [message.pk]

    def test_days_are_utc_days_whatever_the_servers_time_zone(self, tmp_path: Path) -> None:
        conninfo = make_conninfo(
            **connection_parameters() | {"options": "-c timezone=America/New_York"}
        )
        with whole_job(
            run_id=1,
            conninfo=conninfo,
            archive_url=str(tmp_path),
            spark=Spark(),
            progress=archived.RecordedProgress(),
        ) as given:
            row = given.database.execute("SELECT '2026-11-03T01:30:00Z'::timestamptz").fetchone()
            assert row is not None
            assert row[0].date().isoformat() == "2026-11-03"

    def test_many_chunks_contain_the_rows_of_one(self, job: StepJob) -> None:
        ids = [settled(days=10 - number).pk for number in range(5)]
        result = export_history(job, rows=1)
        assert result["chunks"] > 1
        assert [row["id"] for row in rows(job, DELIVERIES)] == ids

    @pytest.mark.slow
    @pytest.mark.parametrize(("made", "chunks"), [(6, 1), (7, 2)])
    def test_a_small_remainder_joins_the_last_chunk(
        self, job: StepJob, made: int, chunks: int
    ) -> None:
        ids = [settled(days=10 - number).pk for number in range(made)]
        assert export_history(job, rows=4)["chunks"] == chunks
        assert [row["id"] for row in rows(job, DELIVERIES)] == ids

    @pytest.mark.slow
    def test_many_of_one_moment_are_in_one_chunk(self, job: StepJob) -> None:
        moment = timezone.now() - timedelta(days=1)
        made = [factories.message(published_at=moment) for _ in range(4)]
        export_history(job, rows=1)
        assert [row["id"] for row in rows(job, MESSAGES)] == [message.pk for message in made]

    def test_an_empty_database_costs_no_spark(self, tmp_path: Path) -> None:
        with archived.job(tmp_path, spark=None) as given:  # type: ignore[arg-type]
            result = export_history(given, lag=AT_ONCE)
        assert result["chunks"] == 0
        assert not ArchiveChunk.objects.exists()

    def test_no_row_is_archived_twice(self, job: StepJob) -> None:
        settled()
        export_history(job)
        before = [rows(job, table) for table in TABLES]
        assert export_history(job)["chunks"] == 0
        assert [rows(job, table) for table in TABLES] == before


class TestSentAgain:
    def test_a_delivery_is_there_for_each_time_it_was_settled_and_each_attempt_once(
        self, job: StepJob
    ) -> None:
        delivery = settled(Status.FAILED)
        export_history(job, lag=AT_ONCE)
        _send_again(delivery)
        export_history(job, lag=AT_ONCE)
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["FAILED", "DELIVERED"]
        assert [row["number"] for row in rows(job, ATTEMPTS)] == [1, 2]

    def test_before_it_was_archived_it_is_there_for_each_time_too(self, job: StepJob) -> None:
        delivery = settled(Status.FAILED)
        _send_again(delivery)
        export_history(job, lag=AT_ONCE)
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["FAILED", "DELIVERED"]
        assert [row["number"] for row in rows(job, ATTEMPTS)] == [1, 2]

    @pytest.mark.slow
    def test_again_and_again(self, job: StepJob) -> None:
        delivery = settled(Status.FAILED)
        for _ in range(2):
            export_history(job, lag=AT_ONCE)
            _send_again(delivery, Status.FAILED)
            _send_again(delivery, Status.FAILED)
        export_history(job, lag=AT_ONCE)
        assert [row["number"] for row in rows(job, ATTEMPTS)] == [1, 2, 3, 4, 5]
        assert len(rows(job, DELIVERIES)) == 5

    @pytest.mark.slow
    def test_while_it_is_exported(self, job: StepJob, progress: archived.RecordedProgress) -> None:
        delivery = settled(Status.FAILED)
        progress.when("exporting", lambda: _send_again(delivery))
        export_history(job, lag=AT_ONCE)
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["FAILED"]
        export_history(job, lag=AT_ONCE)
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["FAILED", "DELIVERED"]
        assert [row["number"] for row in rows(job, ATTEMPTS)] == [1, 2]

    @pytest.mark.slow
    def test_during_a_failed_export(
        self, job: StepJob, progress: archived.RecordedProgress
    ) -> None:
        delivery = settled(Status.FAILED)

        def send_again_and_stop() -> None:
            _send_again(delivery)
            raise Stopped

        progress.when("exporting", send_again_and_stop)
        with pytest.raises(Stopped):
            export_history(job, lag=AT_ONCE)
        export_history(job, lag=AT_ONCE)
        assert [row["status"] for row in rows(job, DELIVERIES)] == ["FAILED", "DELIVERED"]
        assert [row["number"] for row in rows(job, ATTEMPTS)] == [1, 2]


def _send_again(delivery: Delivery, status: Status = Status.DELIVERED) -> None:
    """Reopen it, and settle it as a sender does, with another attempt."""
    assert transitions.reopen_deliveries([delivery.pk], reason="resubmitted by anna")
    delivery.refresh_from_db()
    number = delivery.attempts + 1
    with psycopg.connect(make_conninfo(**connection_parameters()), autocommit=True) as sender:
        sender.execute(
            "UPDATE delivery_delivery SET status = %s, settled_at = clock_timestamp(), "
            "attempts = %s WHERE id = %s",
            [status.value, number, delivery.pk],
        )
    delivery.refresh_from_db()
    factories.attempt(delivery, number=number)
