"""The export waits for late commits, and an interrupted one publishes nothing."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from pyarrow import parquet

from delivery.database.connections import connection_parameters
from delivery.history.archive import chunk as chunks
from delivery.history.archive.ledger import archived_until
from delivery.history.job import StepJob, Stopped
from delivery.history.postgres.window import LAG
from delivery.history.schemas import ATTEMPTS, DELIVERIES, JOURNAL, MESSAGES
from delivery.history.steps.export import MismatchError, export_history
from delivery.lifecycle import transitions
from delivery.models import (
    ArchiveChunk,
    Archived,
    ArchiveFile,
    ChunkState,
    Delivery,
    EarlierSettlement,
)
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.history import archived
from tests.unit.delivery.history.exporting import AT_ONCE, rows, settled, visible

pytestmark = pytest.mark.django_db(transaction=True)


class TestLateCommits:
    def test_an_open_transaction_holds_the_export_back(self, job: StepJob) -> None:
        early = factories.message(published_at=timezone.now() - timedelta(days=1))
        with psycopg.connect(make_conninfo(**connection_parameters())) as slow:
            slow.execute(
                "INSERT INTO delivery_journalentry (kind, text, actor) "
                "VALUES ('TESTED', 'late', '')"
            )
            factories.message(published_at=timezone.now())
            held = export_history(job, lag=AT_ONCE)
            assert [row["id"] for row in rows(job, MESSAGES)] == [early.pk]
            assert datetime.fromisoformat(held["until"]) <= _began(slow)
            slow.commit()
        export_history(job, lag=AT_ONCE)
        assert len(rows(job, MESSAGES)) == 2
        assert [row["text"] for row in rows(job, JOURNAL)] == ["late"]

    def test_a_reading_transaction_does_not_hold_the_export_back(self, job: StepJob) -> None:
        with psycopg.connect(make_conninfo(**connection_parameters())) as reader:
            reader.execute("SELECT count(*) FROM delivery_message")
            factories.message(published_at=timezone.now() - timedelta(seconds=1))
            export_history(job, lag=AT_ONCE)
        assert len(rows(job, MESSAGES)) == 1

    def test_the_newest_seconds_are_left_to_the_next(self, job: StepJob) -> None:
        factories.message(published_at=timezone.now())
        result = export_history(job)
        assert result["rows"]["messages"] == 0
        assert datetime.fromisoformat(result["until"]) <= timezone.now() - LAG


class TestCrash:
    def test_stopped_at_any_point_and_run_again_it_has_everything_once(
        self, job: StepJob, progress: archived.RecordedProgress, tmp_path: Path
    ) -> None:
        deliveries = [settled(days=days) for days in (3, 2, 1)]
        stops = 0
        while True:
            progress.stop_after(stops)
            try:
                export_history(job, rows=1)
                break
            except Stopped:
                stops += 1
        progress.stop_after(None)
        export_history(job)
        # At each report of a chunk's progress.
        assert stops >= 4
        assert [row["id"] for row in rows(job, DELIVERIES)] == [
            delivery.pk for delivery in deliveries
        ]
        assert [row["delivery_id"] for row in rows(job, ATTEMPTS)] == [
            delivery.pk for delivery in deliveries
        ]
        assert visible(tmp_path) == sorted(ArchiveFile.objects.values_list("path", flat=True))

    @pytest.mark.slow
    def test_an_unfinished_write_is_discarded(
        self, job: StepJob, progress: archived.RecordedProgress, tmp_path: Path
    ) -> None:
        settled()
        progress.when("comparing", _stop)
        with pytest.raises(Stopped):
            export_history(job)
        assert visible(tmp_path) == []
        assert archived_until(job.database) is None
        export_history(job)
        assert ArchiveChunk.objects.get().state == ChunkState.DONE
        assert not list((tmp_path / ".staging").rglob("*"))

    def test_an_unfinished_move_is_completed(self, job: StepJob, tmp_path: Path) -> None:
        settled()
        export_history(job)
        watermark = archived_until(job.database)
        # As after a kill behind the first file's move.
        ArchiveChunk.objects.update(state=ChunkState.MOVING, ended_at=None)
        job.database.execute("DELETE FROM delivery_archived")
        for file in ArchiveFile.objects.all()[1:]:
            staged = tmp_path / file.staged
            staged.parent.mkdir(parents=True)
            (tmp_path / file.path).rename(staged)
        chunks.recover_chunks(job.database, job.archive)
        assert ArchiveChunk.objects.get().state == ChunkState.DONE
        assert archived_until(job.database) == watermark
        assert visible(tmp_path) == sorted(ArchiveFile.objects.values_list("path", flat=True))
        assert len(rows(job, DELIVERIES)) == 1

    def test_a_file_changed_on_the_way_does_not_count(
        self, job: StepJob, progress: archived.RecordedProgress, tmp_path: Path
    ) -> None:
        settled()

        def lose_a_file() -> None:
            (written,) = (tmp_path / ".staging").rglob("messages/*/*.parquet")
            written.unlink()

        progress.when("comparing", lose_a_file)
        with pytest.raises(
            MismatchError,
            match=r"Of messages, PostgreSQL has 1 rows, it sent 1, and 0 were written. Nothing of "
            r"it counts",
        ):
            export_history(job)
        assert archived_until(job.database) is None
        export_history(job)
        assert len(rows(job, MESSAGES)) == 1

    @pytest.mark.parametrize(
        ("table", "column"),
        [
            ("deliveries", "endpoint"),
            pytest.param("attempts", "subscriber", marks=pytest.mark.slow),
            pytest.param("deliveries", "reason", marks=pytest.mark.slow),
        ],
    )
    def test_a_renamed_file_does_not_count(
        self,
        job: StepJob,
        progress: archived.RecordedProgress,
        tmp_path: Path,
        table: str,
        column: str,
    ) -> None:
        settled()

        def change_a_file() -> None:
            (written,) = (tmp_path / ".staging").rglob(f"{table}/*/*.parquet")
            rows = parquet.ParquetFile(written).read()
            place = rows.schema.get_field_index(column)
            changed = pa.array(["changed"] * len(rows))
            parquet.write_table(rows.set_column(place, rows.schema.field(place), changed), written)

        progress.when("comparing", change_a_file)
        with pytest.raises(
            MismatchError, match=rf"Of {table}, PostgreSQL has 1 rows, it sent 1, and "
        ):
            export_history(job)
        assert archived_until(job.database) is None


class TestAClockThatGoesBack:
    def test_rows_behind_the_archives_end_are_archived_once_the_clock_has_caught_up(
        self, job: StepJob
    ) -> None:
        export_history(job, lag=AT_ONCE)
        hour = timedelta(hours=1)
        archived_until = timezone.now() + hour
        Archived.objects.update_or_create(pk=1, defaults={"until": archived_until})
        delivery = settled(Status.PENDING)
        transitions.cancel_deliveries([delivery.pk], actor="anna")
        assert export_history(job, lag=AT_ONCE)["chunks"] == 0
        assert rows(job, DELIVERIES) == []
        # An hour passes.
        Archived.objects.update(until=archived_until - hour)
        Delivery.objects.update(settled_at=archived_until - hour)
        EarlierSettlement.objects.all().delete()
        export_history(job, lag=AT_ONCE)
        assert [(row["id"], row["status"]) for row in rows(job, DELIVERIES)] == [
            (delivery.pk, "CANCELLED")
        ]

    def test_while_the_clock_is_behind_nothing_is_exported(self, job: StepJob) -> None:
        """As if the clock had gone back just after the export chose its end."""
        settled()
        result = export_history(job, lag=-timedelta(hours=1))
        assert result["chunks"] == 0
        assert not ArchiveChunk.objects.exists()
        assert not Archived.objects.exists()
        assert export_history(job, lag=AT_ONCE)["chunks"] == 1


def _began(connection: psycopg.Connection[Any]) -> datetime:
    row = connection.execute("SELECT now()").fetchone()
    assert row is not None
    began: datetime = row[0]
    return began


def _stop() -> None:
    raise Stopped
