"""The columns of an hour's row, from a few settlements and their attempts."""

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delivery.history.schemas import ATTEMPTS, DELIVERIES
from delivery.history.transforms.measures import (
    COLUMNS,
    COUNTS,
    STATUSES,
    hourly_measures,
    with_stops,
)
from tests.unit.delivery.history.archived import AT, Row, attempt, delivery, frame, seconds

HOUR = timedelta(hours=1)
STOPPED = "hour timestamp, subscription_id bigint, blocked_seconds double"
NAMES = (
    "subscription_id bigint, subscriber string, subscription string, event_type string, "
    "endpoint string"
)


def of(spark: SparkSession, deliveries: list[Row], attempts: list[Row]) -> DataFrame:
    return hourly_measures(frame(spark, DELIVERIES, deliveries), frame(spark, ATTEMPTS, attempts))


def rows(found: DataFrame) -> list[dict[str, Any]]:
    ordered = found.orderBy("hour", "subscription_id", "subscriber", "event_type")
    return [row.asDict() for row in ordered.collect()]


def counted(row: dict[str, Any]) -> dict[str, int]:
    return {name: row[name] for name in COUNTS if row[name]}


def test_each_status_has_its_count(spark: SparkSession) -> None:
    statuses = [
        "DELIVERED",
        "DELIVERED",
        "REJECTED",
        "3xxNOTSUPPORTED",
        "REDUNDANT",
        "FAILED",
        "IN_DOUBT",
    ]
    statuses += ["EXPIRED", "CANCELLED", "DUPLICATE", "SHADOW"]
    deliveries = [delivery(id, status=status) for id, status in enumerate(statuses, start=1)]
    (row,) = rows(of(spark, deliveries, []))
    once = set(STATUSES) - {"delivered"}
    assert counted(row) == {"delivered": 2, "bytes": 26, **dict.fromkeys(once, 1)}


def test_hours_subscribers_subscriptions_and_event_types_are_apart(spark: SparkSession) -> None:
    deliveries = [
        delivery(1),
        delivery(2, settled_at=AT + HOUR - timedelta(microseconds=1)),
        delivery(3, settled_at=AT + HOUR),
        delivery(4, subscription_id=2),
        delivery(5, subscriber="renamed"),
        delivery(6, event_type="Test.Other"),
    ]
    found = of(spark, deliveries, [])
    assert [
        (row["subscription_id"], row["subscriber"], row["event_type"], row["delivered"])
        for row in rows(found)
    ] == [
        (1, "renamed", "Test.Event", 1),
        (1, "subscriber1", "Test.Event", 2),
        (1, "subscriber1", "Test.Other", 1),
        (2, "subscriber1", "Test.Event", 1),
        (1, "subscriber1", "Test.Event", 1),
    ]


def test_attempts_belong_to_the_hour_of_the_settlement_they_led_to(spark: SparkSession) -> None:
    late = {"settled_at": AT + HOUR}
    deliveries = [
        delivery(1, status="FAILED", attempts=2),
        delivery(1, attempts=3, attempts_before=2, **late),
    ]
    attempts = [
        attempt(1, 1, outcome="TIMEOUT", duration_ms=30_000),
        attempt(1, 2, outcome="LOST", duration_ms=None),
        attempt(1, 3, **late),
    ]
    before, after = rows(of(spark, deliveries, attempts))
    assert counted(before) == {"failed": 1, "attempts": 2, "failed_attempts": 2, "retried": 1}
    assert counted(after) == {"delivered": 1, "attempts": 1, "retried": 1, "bytes": 13}
    assert (before["response_p50"], before["response_max"]) == (30_000.0, 30_000.0)


def test_percentiles_are_exact(spark: SparkSession) -> None:
    deliveries = [
        delivery(id, settled_at=seconds(id) + timedelta(milliseconds=id)) for id in range(1, 102)
    ]
    attempts = [
        attempt(id, settled_at=seconds(id) + timedelta(milliseconds=id), duration_ms=10 * id)
        for id in range(1, 102)
    ]
    (row,) = rows(of(spark, deliveries, attempts))
    assert [row[f"latency_{place}"] for place in ("p50", "p95", "p99", "max")] == [
        51.0,
        96.0,
        100.0,
        101.0,
    ]
    assert [row[f"response_{place}"] for place in ("p50", "p95", "p99", "max")] == [
        510.0,
        960.0,
        1000.0,
        1010.0,
    ]


def test_a_percentile_between_two_values_is_in_proportion(spark: SparkSession) -> None:
    waits = {1: 10, 2: 40, 3: 20}
    deliveries = [
        delivery(id, published_at=AT, settled_at=AT + timedelta(milliseconds=wait))
        for id, wait in waits.items()
    ]
    # With different numbers of responses.
    attempts = [attempt(id, settled_at=AT, duration_ms=id) for id in (1, 2)]
    (row,) = rows(of(spark, deliveries, attempts))
    places = ("p50", "p95", "p99", "max")
    assert [row[f"latency_{place}"] for place in places] == pytest.approx([20.0, 38.0, 39.6, 40.0])
    assert [row[f"response_{place}"] for place in places] == pytest.approx([1.5, 1.95, 1.99, 2.0])


def test_attempts_of_unsettled_deliveries_give_no_row(spark: SparkSession) -> None:
    found = of(spark, [delivery(1)], [attempt(1), attempt(2, subscription_id=2)])
    assert [(row["subscription_id"], row["attempts"]) for row in rows(found)] == [(1, 1)]


def test_replays_and_undelivered_messages_have_no_latency(spark: SparkSession) -> None:
    (row,) = rows(of(spark, [delivery(1, replay_id=5), delivery(2, status="EXPIRED")], []))
    assert row["latency_p50"] is None
    assert row["latency_max"] is None
    assert row["response_p99"] is None


def test_the_hours_newest_name_and_endpoint_are_reported(spark: SparkSession) -> None:
    deliveries = [
        delivery(2, subscription="new", endpoint="https://new.example/"),
        delivery(1, subscription="old"),
    ]
    (row,) = rows(of(spark, deliveries, []))
    assert (row["subscription"], row["endpoint"]) == ("new", "https://new.example/")


@pytest.mark.slow
def test_an_hour_without_settlements_has_its_blocked_time(spark: SparkSession) -> None:
    stopped = spark.createDataFrame([(AT, 1, 60.0), (AT, 2, 30.0), (AT, 3, 15.0)], STOPPED)
    names = spark.createDataFrame(
        [(1, "renamed", "now", "Now", ""), (2, "other", "second", "Other", "https://x")], NAMES
    )
    found = with_stops(of(spark, [delivery(1)], [attempt(1)]), stopped, names)
    assert found.columns == list(COLUMNS)
    assert [
        (
            row["subscription_id"],
            row["subscriber"],
            row["subscription"],
            row["endpoint"],
            row["attempts"],
            row["blocked_seconds"],
        )
        for row in rows(found)
    ] == [
        (1, "subscriber1", "subscription1", "https://receiver.example/hook", 1, 60.0),
        (2, "other", "second", "https://x", 0, 30.0),
        # The name is unknown by then.
        (3, "", "", "", 0, 15.0),
    ]


@pytest.mark.slow
def test_a_subscription_of_two_names_has_its_blocked_time_once(spark: SparkSession) -> None:
    stopped = spark.createDataFrame([(AT, 1, 60.0)], STOPPED)
    deliveries = [delivery(1), delivery(2, subscriber="renamed")]
    found = with_stops(of(spark, deliveries, []), stopped, spark.createDataFrame([], NAMES))
    assert [row["blocked_seconds"] for row in rows(found)] == [60.0, 0.0]
