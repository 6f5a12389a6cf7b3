"""The rollup measures whole hours of new chunks, and replaces the old rows."""

from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from pyspark.sql import SparkSession

from delivery.history.job import Stopped
from delivery.history.spark import frames
from delivery.history.steps.rollup import HourSpan, measure_hours, spans
from delivery.models import ArchiveChunk, HistoryHour
from tests.support import factories
from tests.unit.delivery.history.archived import (
    AT,
    RecordedProgress,
    attempt,
    delivery,
    entry,
    job,
    message,
    seconds,
    write,
)

HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db(transaction=True)


def hours() -> list[tuple[float, int, int, float]]:
    """Return hours after AT, delivered, attempts, blocked seconds."""
    return [
        ((row.hour - AT) / HOUR, row.delivered, row.attempts, row.blocked_seconds)
        for row in HistoryHour.objects.order_by("hour", "subscription_id")
    ]


def test_time_ranges_touch_whole_hours() -> None:
    halves = [
        (AT + HOUR * 1.5, AT + HOUR * 2),
        (AT + HOUR * 0.5, AT + HOUR * 1.5),
        (AT + HOUR * 5, AT + HOUR * 5),
    ]
    assert spans(halves) == [HourSpan(AT, AT + 2 * HOUR)]
    assert spans([(AT, AT + HOUR), (AT + 2 * HOUR, AT + 3 * HOUR)]) == [
        HourSpan(AT, AT + HOUR),
        HourSpan(AT + 2 * HOUR, AT + 3 * HOUR),
    ]


def test_an_empty_archive_needs_no_spark(tmp_path: Path, spark: SparkSession) -> None:
    reported = RecordedProgress()
    with job(tmp_path, spark=spark, progress=reported) as given:
        assert measure_hours(given) == {"chunks": 0, "rows": 0, "since": None, "until": None}
    assert reported.texts == []


def test_more_rows_are_divided_into_more_partitions(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PartitionsInUse(RecordedProgress):
        def doing(self, text: str) -> None:
            super().doing(f"{text}, {spark.conf.get('spark.sql.shuffle.partitions')} partitions")

    monkeypatch.setattr(frames, "ROWS_A_PARTITION", 1)
    write(
        tmp_path,
        messages=[message(1), message(2), message(3)],
        deliveries=[delivery(1), delivery(2), delivery(3)],
        attempts=[attempt(1), attempt(2)],
    )
    reported, usual = PartitionsInUse(), spark.conf.get("spark.sql.shuffle.partitions")
    with job(tmp_path, spark=spark, progress=reported) as given:
        measure_hours(given)
    assert reported.texts[-1] == "writing the hours, 5 partitions"
    assert hours() == [(0, 3, 2, 0)]
    assert spark.conf.get("spark.sql.shuffle.partitions") == usual


def test_a_chunk_is_measured_once(tmp_path: Path, spark: SparkSession) -> None:
    chunk = write(
        tmp_path,
        messages=[message(1), message(2)],
        deliveries=[delivery(1), delivery(2)],
        attempts=[attempt(1), attempt(2)],
    )
    with job(tmp_path, spark=spark) as given:
        result = measure_hours(given)
        again = measure_hours(given)
    assert hours() == [(0, 2, 2, 0)]
    row = HistoryHour.objects.get()
    assert (row.hour, row.subscriber, row.event_type) == (AT, "subscriber1", "Test.Event")
    assert (row.latency_p50, row.response_max) == (20.0, 5.0)
    assert result == {
        "chunks": 1,
        "rows": 1,
        "since": AT.isoformat(),
        "until": chunk.until.isoformat(),
    }
    assert again["chunks"] == 0
    assert ArchiveChunk.objects.get().is_rolled_up


@pytest.mark.slow
def test_late_rows_of_an_hour_are_measured_with_the_others(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, deliveries=[delivery(1)], attempts=[attempt(1)])
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
    late = AT + HOUR * 2
    write(
        tmp_path,
        deliveries=[delivery(2), delivery(3, settled_at=late)],
        attempts=[attempt(2), attempt(3, settled_at=late)],
    )
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
    assert hours() == [(0, 2, 2, 0), (2, 1, 1, 0)]


@pytest.mark.slow
def test_hours_without_a_new_chunk_are_not_recomputed(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, deliveries=[delivery(1)], until=AT + HOUR)
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
        before = HistoryHour.objects.get().pk
        write(tmp_path, deliveries=[delivery(2, settled_at=AT + HOUR)])
        measure_hours(given)
        assert HistoryHour.objects.filter(pk=before).exists()
        measure_hours(given, everything=True)
    assert not HistoryHour.objects.filter(pk=before).exists()
    assert hours() == [(0, 1, 0, 0), (1, 1, 0, 0)]


@pytest.mark.slow
def test_everything_forgets_hours_that_the_archive_does_not_have(
    tmp_path: Path, spark: SparkSession
) -> None:
    HistoryHour.objects.create(hour=AT - 100 * HOUR, subscription_id=1)
    write(tmp_path, deliveries=[delivery(1)])
    with job(tmp_path, spark=spark) as given:
        measure_hours(given, everything=True)
    assert hours() == [(0, 1, 0, 0)]


def test_a_stop_is_counted_in_each_hour_up_to_the_watermark(
    tmp_path: Path, spark: SparkSession
) -> None:
    subscription = factories.subscription("slow")
    stopped = entry(1, "BLOCKED", at=AT + HOUR / 2, lane_id=1, subscription_id=subscription.pk)
    write(tmp_path, journal=[stopped], until=AT + HOUR * 1.5)
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
        assert hours() == [(0, 0, 0, 1800), (1, 0, 0, 1800)]
        flows = entry(2, "RESUMED", at=AT + HOUR * 1.75, lane_id=1)
        write(tmp_path, journal=[flows], until=AT + HOUR * 2.5)
        measure_hours(given)
    assert hours() == [(0, 0, 0, 1800), (1, 0, 0, 2700)]
    row = HistoryHour.objects.earliest("hour")
    assert (row.subscriber, row.subscription) == (subscription.subscriber.name, "slow")


@pytest.mark.slow
def test_a_stop_is_counted_in_hours_without_settlements(
    tmp_path: Path, spark: SparkSession
) -> None:
    subscription = factories.subscription()
    stopped = entry(1, "BLOCKED", at=AT + HOUR / 2, lane_id=1, subscription_id=subscription.pk)
    write(tmp_path, journal=[stopped], until=AT + HOUR * 0.75)
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
        # An export makes no chunk of a time without events.
        write(
            tmp_path,
            journal=[entry(2, "RESUMED", at=AT + HOUR * 3, lane_id=1)],
            until=AT + HOUR * 3.5,
        )
        measure_hours(given)
    assert hours() == [(0, 0, 0, 1800), (1, 0, 0, 3600), (2, 0, 0, 3600)]


def test_a_run_that_is_stopped_leaves_the_old_hours(tmp_path: Path, spark: SparkSession) -> None:
    old = HistoryHour.objects.create(hour=AT, subscription_id=1)
    write(tmp_path, deliveries=[delivery(1)])
    reported = RecordedProgress(stop_at="writing", error=Stopped())
    with job(tmp_path, spark=spark, progress=reported) as given, pytest.raises(Stopped):
        measure_hours(given)
    assert HistoryHour.objects.get() == old
    assert not ArchiveChunk.objects.get().is_rolled_up


@pytest.mark.slow
def test_a_connection_that_dies_while_writing_leaves_the_old_hours(
    tmp_path: Path, spark: SparkSession
) -> None:
    """As if the process were killed: the server ends the transaction."""

    class Killing(RecordedProgress):
        def advance(self, done: int, count: int | None) -> None:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND query LIKE 'COPY delivery_historyhour%'"
                )

    old = HistoryHour.objects.create(hour=AT, subscription_id=5000)
    many = [delivery(id, settled_at=seconds(1), subscription_id=id) for id in range(1, 1_002)]
    write(tmp_path, deliveries=many)
    with (
        pytest.raises(psycopg.OperationalError),
        job(tmp_path, spark=spark, progress=Killing()) as given,
    ):
        measure_hours(given)
    assert HistoryHour.objects.get() == old
    with job(tmp_path, spark=spark) as given:
        assert measure_hours(given)["rows"] == 1_001
    assert HistoryHour.objects.count() == 1_001


def test_names_are_stored_to_the_letter(tmp_path: Path, spark: SparkSession) -> None:
    names = [
        " a ",
        'say "a", "b"',
        "a\nb\r\nc",
        "\\",
        '\\"',
        "",
        "Zoë ☃",
        "a\tb",
        "\\.",
        "NULL",
        "'",
    ]
    write(
        tmp_path,
        deliveries=[delivery(id, subscriber=name) for id, name in enumerate(names, start=1)],
    )
    with job(tmp_path, spark=spark) as given:
        measure_hours(given)
    assert sorted(HistoryHour.objects.values_list("subscriber", flat=True)) == sorted(names)
