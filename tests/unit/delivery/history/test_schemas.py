"""Schemas are data, checked on construction."""

import pytest
from pyspark.sql import SparkSession

from delivery.history.schemas import JOURNAL, SchemaError


def test_a_frame_is_reordered_to_the_schema(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], JOURNAL.spark)
    mixed = frame.select(*reversed(frame.columns))
    assert JOURNAL.checked(mixed).columns == JOURNAL.names


def test_a_missing_column_is_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], JOURNAL.spark).drop("kind")
    with pytest.raises(SchemaError, match=r"journal\.kind should be string, and is not there"):
        JOURNAL.checked(frame)


def test_a_column_of_another_type_is_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], JOURNAL.spark).selectExpr("*", "cast(id as int) as other")
    with pytest.raises(SchemaError, match=r"journal\.id should be bigint, and is int"):
        JOURNAL.checked(frame.drop("id").withColumnRenamed("other", "id"))
