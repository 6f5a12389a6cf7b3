"""The durations of stopped lanes, from six entries of a journal."""

from datetime import datetime, timedelta

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from delivery.history.schemas import JOURNAL
from delivery.history.transforms.stops import lane_stops, stopped_seconds
from tests.unit.delivery.history.archived import AT, Row, entry, frame, seconds

STOPS = "subscription_id bigint, since timestamp, until timestamp"
SECONDS = "hour timestamp, subscription_id bigint, blocked_seconds double"
WATERMARK = seconds(10_000)
HOUR = timedelta(hours=1)


def lane(id: int, kind: str, subscription_id: int | None = 7, **fields: object) -> Row:
    return entry(id, kind, lane_id=1, subscription_id=subscription_id) | fields


def of(spark: SparkSession, *rows: Row) -> DataFrame:
    return lane_stops(frame(spark, JOURNAL, rows), until=WATERMARK)


def stop_frame(spark: SparkSession, *pieces: tuple[int, datetime, datetime]) -> DataFrame:
    return spark.createDataFrame(list(pieces), STOPS)


def test_a_stop_lasts_from_blocked_to_resumed(spark: SparkSession) -> None:
    found = of(
        spark,
        lane(1, "BLOCKED"),
        lane(2, "RETRIED"),
        lane(3, "RESUMED", None),
        lane(5, "SUSPENDED", lane_id=2),
        lane(6, "RESUMED", None),
        lane(9, "RESUMED", None, lane_id=2),
    )
    expected = stop_frame(spark, (7, seconds(1), seconds(3)), (7, seconds(5), seconds(9)))
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_a_lane_blocked_again_continues_the_stop_for_the_other_subscription(
    spark: SparkSession,
) -> None:
    found = of(spark, lane(1, "BLOCKED"), lane(4, "SUSPENDED", 8), lane(6, "RESUMED", None))
    expected = stop_frame(spark, (7, seconds(1), seconds(4)), (8, seconds(4), seconds(6)))
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_an_open_stop_is_counted_up_to_the_watermark(spark: SparkSession) -> None:
    found = of(spark, lane(1, "BLOCKED"))
    assert_df_equality(found, stop_frame(spark, (7, seconds(1), WATERMARK)), ignore_nullable=True)


def test_stops_are_cut_into_hours(spark: SparkSession) -> None:
    found = stopped_seconds(stop_frame(spark, (7, AT + timedelta(minutes=59), AT + 2 * HOUR)))
    expected = spark.createDataFrame([(AT, 7, 60.0), (AT + HOUR, 7, 3600.0)], SECONDS)
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def test_two_lanes_that_stand_at_once_count_once(spark: SparkSession) -> None:
    pieces = [
        (7, seconds(0), seconds(60)),
        (7, seconds(10), seconds(20)),
        (7, seconds(50), seconds(70)),
    ]
    found = stopped_seconds(
        stop_frame(spark, *pieces, (8, seconds(5), seconds(6)), (8, seconds(9), seconds(9)))
    )
    expected = spark.createDataFrame([(AT, 7, 70.0), (AT, 8, 1.0)], SECONDS)
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)
