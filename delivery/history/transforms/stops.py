"""How long lanes were stopped, by hour and subscription, according to the journal: pure transforms.

A lane is stopped from an entry BLOCKED or SUSPENDED to the lane's next entry RESUMED. Another
BLOCKED or SUSPENDED continues the stop, from then on for the delivery in it. A stop without an end
in the journal lasts until the watermark.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from delivery.history.transforms.pieces import merged_intervals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STOPPED = ("BLOCKED", "SUSPENDED")
FLOWS = "RESUMED"
# The columns of the journal.
READ = ("id", "at", "kind", "lane_id", "subscription_id")


def lane_stops(journal: "DataFrame", *, until: datetime) -> "DataFrame":
    """Return `subscription_id`, `since`, `until` of each stop by a delivery of a subscription.

    The intervals may overlap.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    lane = Window.partitionBy("lane_id").orderBy("at", "id")
    return (
        journal.select(*READ)
        .filter(sql.col("lane_id").isNotNull() & sql.col("kind").isin(*STOPPED, FLOWS))
        .select(
            "subscription_id",
            "kind",
            sql.col("at").alias("since"),
            sql.coalesce(sql.lead("at").over(lane), sql.lit(until)).alias("until"),
        )
        .filter(sql.col("kind").isin(*STOPPED) & sql.col("subscription_id").isNotNull())
        .drop("kind")
    )


def stopped_seconds(stops: "DataFrame") -> "DataFrame":
    """Return `hour`, `subscription_id` and `blocked_seconds`.

    At most 3,600 per hour, though several lanes were stopped at once.
    """
    from pyspark.sql import functions as sql

    hour = sql.col("hour")
    ends = sql.least("until", hour + sql.expr("INTERVAL 1 HOUR"))
    seconds = sql.unix_micros(ends) - sql.unix_micros(sql.greatest("since", "hour"))
    last = sql.date_trunc("hour", sql.col("until") - sql.expr("INTERVAL 1 MICROSECOND"))
    hours = sql.sequence(sql.date_trunc("hour", "since"), last, sql.expr("INTERVAL 1 HOUR"))
    return (
        merged_intervals(stops)
        .withColumn("hour", sql.explode(hours))
        .groupBy("hour", "subscription_id")
        .agg((sql.sum(seconds) / 1e6).alias("blocked_seconds"))
    )
