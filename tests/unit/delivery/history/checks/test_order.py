"""First attempts in publication order: proofs, violations and explanations."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delivery.history.checks.finding import findings
from delivery.history.checks.holds import times_of_holds
from delivery.history.checks.known_deliveries import known_deliveries, places
from delivery.history.checks.order import (
    deliveries_of_suspect_lanes,
    late_deliveries,
    mark_suspects,
    order_counts,
    ordered_deliveries,
    overtaken_deliveries,
)
from delivery.history.postgres.unarchived_rows import UNARCHIVED
from delivery.history.schemas import ATTEMPTS, DELIVERIES, JOURNAL
from tests.unit.delivery.history.archived import Row, attempt, delivery, entry, frame, seconds

Found = list[tuple[str, int, int]]
IGNORED = {"checked", "suspects"}


def history(
    spark: SparkSession,
    tried: dict[int, float],
    *,
    journal: Sequence[Row] = (),
    **of: dict[int, Any],
) -> DataFrame:
    """Return the turns of deliveries by id, first tried after so many seconds.

    `of` sets columns of some of them.
    """
    deliveries = [
        delivery(id, settled_at=seconds(1000))
        | {name: values[id] for name, values in of.items() if id in values}
        for id in tried
    ]
    attempts = [attempt(id, started_at=seconds(at)) for id, at in tried.items()]
    rows = frame(spark, DELIVERIES, deliveries)
    nothing = spark.createDataFrame([], UNARCHIVED.spark)
    # Cached as in a run, which reads it repeatedly, and does not plan it each time.
    holds = times_of_holds(frame(spark, JOURNAL, journal), places(rows), owners(rows)).cache()
    return ordered_deliveries(
        known_deliveries(rows, frame(spark, ATTEMPTS, attempts), nothing).cache(), holds
    ).cache()


def owners(rows: DataFrame) -> DataFrame:
    return rows.select("subscription_id", "subscriber_id").distinct()


def found(turns: DataFrame) -> Found:
    some = deliveries_of_suspect_lanes(mark_suspects(turns)).cache()
    rows = findings(overtaken_deliveries(late_deliveries(some).cache(), some)).collect()
    return sorted((row.kind, row.delivery_id, row.other_delivery_id) for row in rows)


def explained(turns: DataFrame) -> dict[str, int]:
    row = mark_suspects(turns).agg(order_counts().alias("counts")).first()
    assert row is not None
    return {
        name: count
        for name, count in row["counts"].asDict().items()
        if count and name not in IGNORED
    }


@pytest.mark.slow
def test_ordered_attempts_pass_and_overtaking_ones_are_found(spark: SparkSession) -> None:
    turns = history(
        spark,
        {1: 10, 2: 11, 3: 10.5, 4: 12, 5: 9, 6: 13},
        # Two subscriptions of one subscriber.
        subscription_id={3: 2, 4: 2},
    )
    assert found(turns) == [("ORDER", 3, 2), ("ORDER", 5, 4)]


@pytest.mark.slow
def test_each_subscriber_and_each_replay_has_an_order_of_its_own(spark: SparkSession) -> None:
    turns = history(
        spark, {1: 20, 2: 15, 3: 10, 4: 5}, subscriber_id={2: 2}, replay_id={3: 7, 4: 8}
    )
    assert found(turns) == []


@pytest.mark.slow
def test_an_order_is_promised_in_lanes_that_send_one_after_the_other(spark: SparkSession) -> None:
    turns = history(
        spark,
        {1: 50, 2: 40, 3: 30, 4: 20, 5: 10},
        kind={2: "QUEUE"},
        mode={3: "PULL"},
        processing={4: "CONCURRENT"},
        callback_id={5: 1},
    )
    assert found(turns) == []


@pytest.mark.slow
def test_publications_at_the_same_time_have_no_order(spark: SparkSession) -> None:
    """2 was published before 1 ended, 3 after; 5 and 4 are of one transaction, in which 4 was
    published first.
    """
    turns = history(
        spark,
        {1: 10, 2: 8, 3: 9, 5: 11, 4: 12},
        seen_before={2: 1001, 3: 1002, 4: 1004, 5: 1004},
        transaction_id={4: 1004, 5: 1004},
    )
    assert found(turns) == [("ORDER", 3, 1), ("ORDER", 5, 4)]


@pytest.mark.slow
def test_messages_without_a_recorded_transaction_prove_nothing(spark: SparkSession) -> None:
    turns = history(
        spark, {1: 10, 2: 9}, transaction_id={1: None, 2: None}, seen_before={1: None, 2: None}
    )
    assert found(turns) == []
    assert explained(turns) == {"not_provable": 2}


@pytest.mark.slow
def test_an_inactive_subscription_may_be_overtaken(spark: SparkSession) -> None:
    """1 is held from 4 to 50. 3 was tried before; 6 was in a run that was read before 50; 7 was
    published after it.
    """
    toggled = [entry(1, "DEACTIVATED", at=seconds(4)), entry(2, "ACTIVATED", at=seconds(50))]
    turns = history(
        spark,
        {1: 70, 3: 3.5, 5: 20, 6: 60, 7: 61},
        subscription_id={3: 2, 5: 2, 6: 2, 7: 2},
        published_at={1: seconds(1), 3: seconds(3), 5: seconds(5), 6: seconds(49), 7: seconds(55)},
        journal=[row | {"subscription_id": 1} for row in toggled],
    )
    assert found(turns) == [("ORDER", 3, 1), ("ORDER", 7, 1)]
    assert explained(turns) == {"held": 1}


@pytest.mark.slow
def test_a_stopped_url_may_be_overtaken(spark: SparkSession) -> None:
    stopped = [
        entry(
            1, "DISABLED", at=seconds(1.5), text="https://receiver.example/hook is disabled: 9 of 9"
        ),
        entry(
            2, "FROZEN", at=seconds(10), text="https://receiver.example/hook is frozen: 9 attempts"
        ),
        entry(
            3,
            "ENABLED",
            at=seconds(50),
            text="https://receiver.example/hook was FROZEN and is released.",
        ),
    ]
    endpoints = {
        1: "PATCH:https://receiver.example/hook",
        2: "https://other.example/",
        3: "https://other.example/",
    }
    subscriptions = {2: 2, 3: 3}
    turns = history(
        spark,
        {1: 60, 2: 20, 3: 30},
        endpoint=endpoints,
        subscription_id=subscriptions,
        journal=stopped,
    )
    assert found(turns) == []
    assert explained(turns) == {"held": 1}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["hook?•••", "hook?token=SECRET"])
def test_a_stopped_url_is_known_by_what_its_masked_entries_show(
    spark: SparkSession, text: str
) -> None:
    """Entries of before the masks have the whole URL."""
    url = f"https://receiver.example/{text}"
    stopped = [
        entry(1, "DISABLED", at=seconds(1.5), text=f"{url} is disabled: 9 of 9"),
        entry(2, "ENABLED", at=seconds(50), text=f"{url} is enabled again"),
    ]
    turns = history(
        spark,
        {1: 60, 2: 20},
        endpoint={1: "https://receiver.example/hook?token=SECRET", 2: "https://other.example/"},
        subscription_id={2: 2},
        journal=stopped,
    )
    assert found(turns) == []
    assert explained(turns) == {"held": 1}


@pytest.mark.slow
def test_a_cancelled_delivery_that_is_sent_again_keeps_no_place(spark: SparkSession) -> None:
    turns = history(spark, {1: 60, 2: 20}, redelivery={1: "resubmitted"})
    assert found(turns) == []
    assert explained(turns) == {"sent_again": 1}


@pytest.mark.slow
def test_a_resubmission_is_no_first_attempt(spark: SparkSession) -> None:
    rows = frame(
        spark,
        DELIVERIES,
        [delivery(1), delivery(2), delivery(1, settled_at=seconds(90), attempts=2)],
    )
    tried = [
        attempt(1, outcome="TIMEOUT"),
        attempt(2),
        attempt(1, 2, started_at=seconds(80), settled_at=seconds(90)),
    ]
    nothing = spark.createDataFrame([], UNARCHIVED.spark)
    holds = times_of_holds(frame(spark, JOURNAL, []), places(rows), owners(rows))
    turns = ordered_deliveries(
        known_deliveries(rows, frame(spark, ATTEMPTS, tried), nothing), holds
    )
    assert found(turns) == []
    assert turns.count() == 2


@pytest.mark.slow
def test_holds_neither_overlap_nor_meet(spark: SparkSession) -> None:
    journal = [
        entry(1, "ACTIVATED", subscription_id=1, at=seconds(1)),
        entry(2, "DEACTIVATED", subscription_id=1, at=seconds(10)),
        entry(3, "ACTIVATED", subscription_id=1, at=seconds(20)),
        entry(4, "DISABLED", at=seconds(15), text="https://receiver.example/hook is disabled"),
        entry(5, "ENABLED", at=seconds(30), text="https://receiver.example/hook is enabled again"),
        entry(6, "DEACTIVATED", subscription_id=1, at=seconds(100)),
    ]
    rows = frame(spark, DELIVERIES, [delivery(1)])
    (row,) = (
        times_of_holds(frame(spark, JOURNAL, journal), places(rows), owners(rows))
        .selectExpr(
            "subscription_id",
            "transform(holds, hold -> unix_seconds(hold.since)) AS since",
            "transform(holds, hold -> unix_seconds(hold.until)) AS until",
        )
        .collect()
    )
    first = int(seconds(0).timestamp())
    slack = timedelta(seconds=2).seconds
    assert row.since == [0, first + 10, first + 100]
    assert row.until[:2] == [first + 1 + slack, first + 30 + slack]


@pytest.mark.slow
def test_what_overtook_a_delivery_of_a_held_subscriber_or_while_all_sending_was_held_is_explained(
    spark: SparkSession,
) -> None:
    tried: dict[int, float] = {1: 30, 2: 11}
    begun, ended = {"at": seconds(5)}, {"at": seconds(25)}
    subscriber, everything = {"lane_id": 7, "subscriber_id": 1}, dict[str, Any]()
    for about in (subscriber, everything):
        journal = [entry(1, "HELD", **begun, **about), entry(2, "ACTIVATED", **ended, **about)]
        assert found(history(spark, tried, journal=journal)) == []
    others = {"lane_id": 8, "subscriber_id": 99}
    journal = [entry(1, "HELD", **begun, **others), entry(2, "ACTIVATED", **ended, **others)]
    assert found(history(spark, tried, journal=journal)) == [("ORDER", 2, 1)]
