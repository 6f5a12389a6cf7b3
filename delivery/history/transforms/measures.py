"""Measures of the history by hour, subscriber, subscription and event type: pure transforms.

Each settlement belongs to the hour of `settled_at`, with the attempts in the archive. A resubmitted
delivery was settled more than once: each settlement counts in the hour in which it happened.
Percentiles are exact.
"""

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("hour", "subscription_id", "subscriber", "event_type")
# Columns of the hour, and the status counted by each.
STATUSES = {
    "delivered": "DELIVERED",
    "rejected": "REJECTED",
    "unsupported": "3xxNOTSUPPORTED",
    "redundant": "REDUNDANT",
    "failed": "FAILED",
    "in_doubt": "IN_DOUBT",
    "expired": "EXPIRED",
    "cancelled": "CANCELLED",
    "duplicate": "DUPLICATE",
    "shadow": "SHADOW",
}
SUCCESSES = ("SUCCESS", "ACKNOWLEDGED")
COUNTS = (*STATUSES, "attempts", "failed_attempts", "retried", "bytes")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_SPREAD = (*_PERCENTILES, "max")
# The columns of an hour's row in PostgreSQL.
COLUMNS = (
    *KEY,
    "subscription",
    "endpoint",
    *COUNTS,
    "blocked_seconds",
    *(f"{measure}_{place}" for measure in ("latency", "response") for place in _SPREAD),
)


def hourly_measures(deliveries: "DataFrame", attempts: "DataFrame") -> "DataFrame":
    """Return a row per hour and key with a settlement; all COLUMNS but `blocked_seconds`."""
    from pyspark.sql import functions as sql

    # Partitioned by hour and subscription once, settlements and attempts alike, for all later
    # steps.
    rows = _settled(deliveries).unionByName(_tried(attempts)).repartition("hour", "subscription_id")
    return (
        _in_order(rows)
        .groupBy(*_GROUP)
        .agg(
            sql.max_by("named", "settled_at").alias("named"),
            *(
                sql.count_if(sql.col("status") == status).alias(name)
                for name, status in STATUSES.items()
            ),
            sql.count_if("is_attempt").alias("attempts"),
            sql.count_if("is_failed").alias("failed_attempts"),
            sql.count_if("is_retried").alias("retried"),
            sql.sum("bytes").alias("bytes"),
            *_spread("latency", ~sql.col("is_attempt")),
            *_spread("response", sql.col("is_attempt")),
        )
        # Groups with attempts alone have no settlement, and are dropped by this join.
        .join(sql.broadcast(_named(deliveries)), "named")
        .select(*(column for column in COLUMNS if column != "blocked_seconds"))
    )


def with_stops(measured: "DataFrame", stopped: "DataFrame", names: "DataFrame") -> "DataFrame":
    """Add how long each subscription blocked a lane in each hour.

    Hours without settlements have a row, too. `names` are those of the existing subscriptions:
    `subscription_id`, `subscriber`, `subscription`, `event_type`, `endpoint`. A subscription
    renamed within the hour has several rows in it: the first gets the time.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    names = names.select(
        "subscription_id", *(sql.col(name).alias(f"known_{name}") for name in _NAMES)
    )
    place = sql.row_number().over(Window.partitionBy(*_HOURLY).orderBy("subscriber", "event_type"))
    stopped = stopped.withColumnsRenamed({name: f"stopped_{name}" for name in _HOURLY})
    is_first = (sql.col("place") == 1) & reduce(
        and_, (sql.col(name) == sql.col(f"stopped_{name}") for name in _HOURLY)
    )
    known = [sql.coalesce(name, f"known_{name}", sql.lit("")).alias(name) for name in _NAMES]
    return (
        measured.withColumn("place", place)
        .join(stopped, is_first, "full")
        .withColumns({name: sql.coalesce(name, f"stopped_{name}") for name in _HOURLY})
        .join(names, "subscription_id", "left")
        .select(*(column for column in COLUMNS if column not in _NAMES), *known)
        .fillna(0, [*COUNTS, "blocked_seconds"])
        .select(*COLUMNS)
    )


_NAMES = ("subscriber", "subscription", "event_type", "endpoint")
_HOURLY = ("hour", "subscription_id")
# Numbers in place of KEY: Spark groups and sorts by them in a fraction of the time. Two hashes in
# `who` can only be confused within the same subscription and hour.
_GROUP = (*_HOURLY, "who")
_HOUR_MICROSECONDS = 3_600_000_000


def _settled(deliveries: "DataFrame") -> "DataFrame":
    """Return the measures of settlements; `value` is the latency in milliseconds."""
    from pyspark.sql import functions as sql

    waited = (sql.unix_micros("settled_at") - sql.unix_micros("published_at")) / 1000.0
    is_delivered = sql.col("status") == "DELIVERED"
    return deliveries.select(
        *_group(),
        sql.lit(False).alias("is_attempt"),
        # A replay is delivered long after the publication: it is no delay.
        sql.when(is_delivered & sql.col("replay_id").isNull(), waited).alias("value"),
        "status",
        "settled_at",
        sql.xxhash64(*_NAMES).alias("named"),
        (sql.col("attempts") > 1).alias("is_retried"),
        sql.when(is_delivered, sql.col("body_bytes")).otherwise(0).alias("bytes"),
        sql.lit(False).alias("is_failed"),
    )


def _tried(attempts: "DataFrame") -> "DataFrame":
    """Return the measures of attempts, in those columns; `value` is the response's milliseconds."""
    from pyspark.sql import functions as sql

    return attempts.select(
        *_group(),
        sql.lit(True).alias("is_attempt"),
        sql.col("duration_ms").cast("double").alias("value"),
        sql.lit(None).cast("string").alias("status"),
        sql.lit(None).cast("timestamp").alias("settled_at"),
        sql.lit(None).cast("bigint").alias("named"),
        sql.lit(False).alias("is_retried"),
        sql.lit(0).cast("bigint").alias("bytes"),
        (~sql.col("outcome").isin(*SUCCESSES)).alias("is_failed"),
    )


def _group() -> "list[Column]":
    """Return the columns of _GROUP, by the time of settlement."""
    from pyspark.sql import functions as sql

    at = sql.unix_micros("settled_at")
    return [
        sql.timestamp_micros(at - sql.pmod(at, sql.lit(_HOUR_MICROSECONDS))).alias("hour"),
        sql.col("subscription_id"),
        sql.xxhash64("subscriber", "event_type").alias("who"),
    ]


def _named(deliveries: "DataFrame") -> "DataFrame":
    """Return the existing names, by their hash `named`."""
    from pyspark.sql import functions as sql

    return deliveries.select(*_NAMES).distinct().withColumn("named", sql.xxhash64(*_NAMES))


def _in_order(rows: "DataFrame") -> "DataFrame":
    """Add each value's `place` from 0 within the group's settlements or attempts, and the `last`.

    Null values come after `last`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    group = Window.partitionBy(*_GROUP, "is_attempt")
    place = sql.row_number().over(group.orderBy(sql.asc_nulls_last("value"))) - 1
    return rows.withColumn("place", place).withColumn("last", sql.count("value").over(group) - 1)


def _spread(measure: str, condition: "Column") -> "list[Column]":
    """Return exact percentiles of sorted values, linearly interpolated, and the maximum.

    Null if there are no values. Spark's own `percentile` counts each group's values in a separate
    table, which takes four times as long.
    """
    from pyspark.sql import functions as sql

    def at(share: float) -> "Column":
        # Weights the two values next to the wanted place by their nearness, and all others by 0.
        part = 1 - sql.abs(sql.col("place") - sql.col("last") * share)
        return sql.sum(sql.when(condition & (part > 0), part * sql.col("value")))

    percentiles = [at(share).alias(f"{measure}_{name}") for name, share in _PERCENTILES.items()]
    return [*percentiles, sql.max(sql.when(condition, sql.col("value"))).alias(f"{measure}_max")]
