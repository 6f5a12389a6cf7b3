"""The checks of deliveries, groups and messages: violations, and explained cases."""

from pyspark.sql import DataFrame, SparkSession

from delivery.history.checks.attempts import check_attempts, tried_counts
from delivery.history.checks.finding import findings
from delivery.history.checks.groups import check_groups
from delivery.history.checks.known_deliveries import known_deliveries
from delivery.history.checks.owed_deliveries import check_owed
from delivery.history.postgres.unarchived_rows import UNARCHIVED
from delivery.history.schemas import ATTEMPTS, DELIVERIES, MESSAGES
from tests.unit.delivery.history.archived import Row, attempt, delivery, frame, message, seconds


def of(spark: SparkSession, deliveries: list[Row], attempts: list[Row]) -> DataFrame:
    nothing = spark.createDataFrame([], UNARCHIVED.spark)
    return known_deliveries(
        frame(spark, DELIVERIES, deliveries), frame(spark, ATTEMPTS, attempts), nothing
    )


def found(checked: DataFrame) -> list[tuple[str, int | None, int | None]]:
    rows = findings(checked).collect()
    return sorted((row.kind, row.delivery_id, row.other_delivery_id) for row in rows)


def test_the_newest_settlement_counts_with_the_attempts_of_all(spark: SparkSession) -> None:
    deliveries = [
        delivery(1, status="FAILED", attempts=2),
        delivery(
            1, settled_at=seconds(90), attempts=3, attempts_before=2, redelivery="resubmitted"
        ),
        delivery(2, status="CANCELLED", attempts=0),
        delivery(2, settled_at=seconds(90)),
        delivery(3, status="SHADOW", attempts=0),
    ]
    attempts = [
        attempt(1, 1, outcome="TIMEOUT"),
        attempt(1, 2, outcome="LOST"),
        attempt(1, 3, settled_at=seconds(90)),
        attempt(2, settled_at=seconds(90)),
    ]
    columns = (
        "id",
        "status",
        "settlements",
        "attempts",
        "tried",
        "success_number",
        "lost",
        "is_untried",
    )
    rows = of(spark, deliveries, attempts).orderBy("id").select(*columns).collect()
    assert [tuple(row) for row in rows] == [
        (1, "DELIVERED", 2, 3, 3, 3, 1, 0),
        (2, "DELIVERED", 2, 1, 1, 1, 0, 1),
        (3, "SHADOW", 1, 0, 0, None, 0, 0),
    ]


def test_attempts_must_be_complete_and_end_with_a_success(spark: SparkSession) -> None:
    """1 is sound; 2 was sent after its success, 3 by a person; 4 has a gap, 5 an attempt too few; 6
    was never tried.
    """
    deliveries = [
        delivery(1, attempts=2),
        delivery(2, attempts=2),
        delivery(3, attempts=2, attempts_before=1),
        delivery(4, attempts=2),
        delivery(5, attempts=2),
        delivery(6, attempts=0, status="EXPIRED"),
    ]
    attempts = [
        attempt(1, 1, outcome="LOST"),
        *(
            attempt(1, 2),
            attempt(2, 1),
            attempt(2, 2, outcome="TIMEOUT"),
            attempt(3, 1),
            attempt(3, 2),
        ),
        *(attempt(4, 1, outcome="TIMEOUT"), attempt(4, 3), attempt(5, 1)),
    ]
    checked = check_attempts(of(spark, deliveries, attempts))
    assert found(checked) == [("GAPS", 4, None), ("GAPS", 5, None), ("TWICE", 2, None)]
    row = checked.agg(tried_counts().alias("counts")).first()
    assert row is not None
    counts = {"deliveries": 6, "attempts": 9, "succeeded": 5, "sent_again": 1, "lost": 1}
    assert row["counts"].asDict() == counts


def test_rows_that_belong_nowhere_or_are_there_twice_are_found(spark: SparkSession) -> None:
    checked = check_attempts(
        of(
            spark,
            [delivery(1), delivery(1), delivery(2)],
            [attempt(1), attempt(2), attempt(2), attempt(3)],
        )
    )
    assert found(checked) == [("STRAY", 1, None), ("STRAY", 2, None), ("STRAY", 3, None)]


def test_of_a_group_one_endpoint_takes_the_message(spark: SparkSession) -> None:
    """1 is sound; 2 was taken twice; 3 by none, yet REDUNDANT; 4 all refused; 5 has two groups."""
    statuses = {
        (1, 0): ["DELIVERED", "REDUNDANT", "REJECTED"],
        (2, 0): ["DELIVERED", "DELIVERED"],
        (3, 0): ["REDUNDANT", "REJECTED"],
        (4, 0): ["REJECTED", "EXPIRED"],
        (5, 0): ["DELIVERED"],
        (5, 1): ["DELIVERED"],
    }
    ids = iter(range(10, 30))
    deliveries = [
        delivery(next(ids), message_id=about, queue_group=group, status=status, attempts=0)
        for (about, group), found in statuses.items()
        for status in found
    ]
    assert found(check_groups(of(spark, deliveries, []))) == [
        ("GROUP", 13, 14),
        ("GROUP", 15, None),
    ]


def test_a_message_has_the_deliveries_it_was_accepted_with(spark: SparkSession) -> None:
    """1 is sound; 2 lacks one; 3 also has a replay's; 4 is older; 5 has none; 6 is there twice, 7
    is missing.
    """
    messages = [
        message(1),
        message(2, owed=2),
        message(3),
        message(4, owed=None),
        message(5, owed=0),
        *(message(6), message(6)),
    ]
    deliveries = [delivery(id) for id in (1, 2, 3, 4, 6, 7)] + [
        delivery(8, message_id=3, replay_id=1)
    ]
    checked = check_owed(frame(spark, MESSAGES, messages), of(spark, deliveries, []))
    assert found(checked) == [("OWED", 2, None), ("STRAY", 6, None), ("STRAY", 7, None)]


def test_settlements_must_be_there_as_often_as_they_count(spark: SparkSession) -> None:
    """1 is sound; 2 lacks its first, 3 one between; 4 has more than there are bits; 5 is of files
    without the numbers.
    """
    deliveries = [
        *settled_again(1, 0, 1, 2),
        *settled_again(2, 1),
        *settled_again(3, 0, 2),
        *settled_again(4, *range(70)),
        *(delivery(5, settled_at=seconds(60 + number), settled_before=None) for number in range(2)),
    ]
    attempts = [attempt(id) for id in range(1, 6)]
    checked = check_attempts(of(spark, deliveries, attempts))
    assert found(checked) == [("GAPS", 2, None), ("GAPS", 3, None)]


def settled_again(id: int, *numbers: int) -> list[Row]:
    """Return settlements of a delivery, each with the number of earlier ones."""
    return [
        delivery(id, settled_at=seconds(60 + number), settled_before=number) for number in numbers
    ]
