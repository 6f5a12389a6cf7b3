"""Intervals of a subscription, from `since` to `until`: a pure transform."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PIECES = "subscription_id bigint, since timestamp, until timestamp"


def merged_intervals(pieces: "DataFrame") -> "DataFrame":
    """Return the same time as disjoint intervals that do not touch; empty ones are left out."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    order = Window.partitionBy("subscription_id").orderBy("since", "until")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    is_apart = sql.coalesce(sql.col("since") > sql.max("until").over(before), sql.lit(True))
    return (
        pieces.filter("until > since")
        .withColumn("is_apart", is_apart.cast("int"))
        .withColumn("piece", sql.sum("is_apart").over(order))
        .groupBy("subscription_id", "piece")
        .agg(sql.min("since").alias("since"), sql.max("until").alias("until"))
        .drop("piece")
    )
