"""Spark frames from rows of this process, by way of Arrow: unlike lists, this starts no worker.

And frames kept on the workers' disks while several queries read them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delivery.history.schemas import Column, arrow_rows, spark_schema
from subscriptions.values.shown_addresses import LONG_PART, MASK, QUERY

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

# A worker joins, groups and sorts so many in memory: a heap of 1 GB has 400 MB for two workers, and
# a delivery with attempts takes 0.4 kB.
ROWS_A_PARTITION = 125_000


def frame_of_rows(
    spark: "SparkSession", columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]
) -> "DataFrame":
    """Return a frame of rows, each with a value for every column."""
    return frame_of_arrow(spark, columns, pa.Table.from_batches([arrow_rows(columns, rows)]))


def frame_of_arrow(spark: "SparkSession", columns: Sequence[Column], rows: pa.Table) -> "DataFrame":
    """Return a frame of Arrow's rows, with these columns."""
    return spark.createDataFrame(rows, spark_schema(columns))


@contextmanager
def partitioned_for(spark: "SparkSession", rows: int) -> "Iterator[None]":
    """Let the session's queries divide so many rows into partitions fit for memory.

    The frames are both made and read in the block.
    """
    name = "spark.sql.shuffle.partitions"
    usual = int(spark.conf.get(name) or 0)
    spark.conf.set(name, max(usual, -(-rows // ROWS_A_PARTITION)))
    try:
        yield
    finally:
        spark.conf.set(name, usual)


@contextmanager
def kept_frame(frame: "DataFrame", *, is_needed_now: bool = True) -> "Iterator[DataFrame]":
    """Keep the frame on disk once it is computed."""
    from pyspark import StorageLevel

    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        if is_needed_now:
            frame.count()
        yield frame
    finally:
        frame.unpersist()


def masked_url(url: "SparkColumn") -> "SparkColumn":
    """Return a URL without its secrets, as `subscriptions.values.shown_addresses` masks it."""
    from pyspark.sql import functions as sql

    path = sql.regexp_replace(url, LONG_PART.pattern, f"/{MASK}")
    return sql.regexp_replace(path, QUERY.pattern, f"?{MASK}")
