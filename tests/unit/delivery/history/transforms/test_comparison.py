"""Rows of another broker's log, read and compared with ours, without an archive."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from delivery.history.transforms.comparison import comparison_rows, rows_within
from delivery.history.transforms.their_log import their_rows
from tests.unit.delivery.history.archived import seconds
from tests.unit.delivery.history.steps.test_compare import time

LOG = "subscription string, key string, status_text string, time_text string"
OURS = (
    "subscription string, key string, status string, at timestamp, message_id bigint, "
    "delivery_id bigint"
)
KEYED = "message_id bigint, key string"


def results(
    spark: SparkSession, log: list[tuple[Any, ...]], ours: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Compare rows (key, status, second) of both sides; return (key, result, overtook)."""
    there = spark.createDataFrame(
        [("", key, status, second and time(second)) for key, status, second in log], LOG
    )
    here = [
        ("", key, status, seconds(second), 100 + second, second) for key, status, second in ours
    ]
    keyed = spark.createDataFrame(
        [(message_id, key) for _, key, _, _, message_id, _ in here], KEYED
    )
    rows = comparison_rows(their_rows(there, statuses={}), spark.createDataFrame(here, OURS), keyed)
    return sorted((row.key, row.result, row.overtook) for row in rows.collect())


class TestComparedRows:
    def test_have_one_result_each(self, spark: SparkSession) -> None:
        log = [
            ("a", "DELIVERED", 1),
            ("b", "DELIVERED", 2),
            ("c", "DELIVERED", 3),
            ("d", "FAILED", 4),
            ("e", "200", 5),
        ]
        ours = [
            ("a", "DELIVERED", 1),
            ("c", "DELIVERED", 5),
            ("d", "DELIVERED", 4),
            ("e", "DELIVERED", 4),
            ("f", "DELIVERED", 6),
        ]
        assert results(spark, log, ours) == [
            ("a", "SAME", None),
            ("b", "ONLY_THERE", None),
            ("c", "SAME", None),
            ("d", "OTHER_STATUS", None),
            ("e", "OTHER_ORDER", "c"),
            ("f", "ONLY_HERE", None),
        ]

    def test_of_equal_times_there_have_no_order(self, spark: SparkSession) -> None:
        log = [("a", "DELIVERED", 1), ("b", "DELIVERED", 1)]
        ours = [("a", "DELIVERED", 2), ("b", "DELIVERED", 1)]
        assert results(spark, log, ours) == [("a", "SAME", None), ("b", "SAME", None)]

    def test_without_times_there_are_compared_by_status_alone(self, spark: SparkSession) -> None:
        log = [("a", "DELIVERED", None), ("b", "404", None), ("c", None, None)]
        ours = [("a", "DELIVERED", 3), ("b", "DELIVERED", 2), ("c", "FAILED", 1)]
        assert results(spark, log, ours) == [
            ("a", "SAME", None),
            ("b", "OTHER_STATUS", None),
            ("c", "SAME", None),
        ]

    def test_of_several_attempts_count_as_the_first_success(self, spark: SparkSession) -> None:
        log = [("a", "500", 1), ("a", "200", 3), ("a", "500", 9), ("b", "500", 2), ("b", "410", 4)]
        ours = [("a", "DELIVERED", 1), ("b", "FAILED", 1), ("b", "REJECTED", 5)]
        assert results(spark, log, ours) == [("a", "SAME", None), ("b", "SAME", None)]

    @pytest.mark.parametrize(
        "status",
        [
            "REDUNDANT",
            *(
                pytest.param(status, marks=pytest.mark.slow)
                for status in ("CANCELLED", "DUPLICATE")
            ),
        ],
    )
    def test_that_were_not_sent_here_either_are_no_difference(
        self, spark: SparkSession, status: str
    ) -> None:
        assert results(spark, [], [("a", status, 1), ("b", "FAILED", 1)]) == [
            ("b", "ONLY_HERE", None)
        ]

    def test_are_chosen_by_the_time_there(self, spark: SparkSession) -> None:
        there = spark.createDataFrame(
            [("", key, "", time(second)) for key, second in (("a", 1), ("b", 9))], LOG
        )
        here = [("", key, "DELIVERED", seconds(9), 1, 1) for key in ("a", "c")]
        keyed = spark.createDataFrame([(1, "a")], KEYED)
        rows = comparison_rows(
            their_rows(there, statuses={}), spark.createDataFrame(here, OURS), keyed
        )
        found = rows_within(rows, since=seconds(2), until=seconds(9))
        assert found.collect() == []
        assert sorted(row.key for row in rows_within(rows, since=seconds(2)).collect()) == [
            "b",
            "c",
        ]


class TestRowsOfTheLog:
    @pytest.mark.parametrize(
        ("text", "status"),
        [
            ("delivered", "DELIVERED"),
            ("3xxNotSupported", "3xxNOTSUPPORTED"),
            (" 204 ", "DELIVERED"),
            ("302", "3xxNOTSUPPORTED"),
            ("404", "REJECTED"),
            ("503", "FAILED"),
            ("Done", "DELIVERED"),
            ("", None),
        ],
    )
    def test_have_a_status(self, spark: SparkSession, text: str, status: str | None) -> None:
        log = spark.createDataFrame([("", "a", text, None)], LOG)
        (row,) = their_rows(log, statuses={"DONE": "DELIVERED"}).collect()
        assert (row.status, row.unknown_status) == (status, None)

    def test_with_unreadable_texts_keep_them(self, spark: SparkSession) -> None:
        log = spark.createDataFrame([("", " a ", "lost", "yesterday"), ("", " ", None, None)], LOG)
        first, second = their_rows(log, statuses={}).collect()
        assert (first.key, first.unknown_status, first.unknown_time) == ("a", "lost", "yesterday")
        assert (second.key, second.unknown_status, second.unknown_time) == (None, None, None)

    def test_have_times_of_the_given_form(self, spark: SparkSession) -> None:
        log = spark.createDataFrame([("", "a", None, "22.11.2026 10:00:01")], LOG)
        rows = their_rows(log, statuses={}, time_format="dd.MM.yyyy HH:mm:ss")
        assert rows.selectExpr("unix_seconds(at)").first() == (int(seconds(1).timestamp()),)
