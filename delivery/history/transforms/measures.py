"""What the history measures of each hour, subscriber, subscription and event type: pure transforms.

Each settlement belongs to the hour of its `settled_at`, with the attempts that the archive has of it. One that a person sent again was
settled more than once: each time counts in its own hour, for that is what happened then. Percentiles are exact.
"""

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY = ("hour", "subscription_id", "subscriber", "event_type")
# Columns of the hour, and the status that they count.
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
}
SUCCESSES = ("SUCCESS", "ACKNOWLEDGED")
COUNTS = (*STATUSES, "attempts", "failed_attempts", "retried", "bytes")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_SPREAD = (*_PERCENTILES, "max")
# Of the row of an hour, as it is in PostgreSQL.
COLUMNS = (
    *KEY,
    "subscription",
    "endpoint",
    *COUNTS,
    "blocked_seconds",
    *(f"{measure}_{place}" for measure in ("latency", "response") for place in _SPREAD),
)


def measured(deliveries: "DataFrame", attempts: "DataFrame") -> "DataFrame":
    """Return one row of an hour for each key that something was settled of; all COLUMNS but `blocked_seconds`."""
    from pyspark.sql import functions as sql

    # Laid by hour and subscription once, settlements and attempts alike: all that follows finds them so.
    rows = _settled(deliveries).unionByName(_tried(attempts)).repartition("hour", "subscription_id")
    return (
        _in_order(rows)
        .groupBy(*_GROUP)
        .agg(
            sql.max_by("named", "settled_at").alias("named"),
            *(sql.count_if(sql.col("status") == status).alias(name) for name, status in STATUSES.items()),
            sql.count_if("is_attempt").alias("attempts"),
            sql.count_if("is_failed").alias("failed_attempts"),
            sql.count_if("is_retried").alias("retried"),
            sql.sum("bytes").alias("bytes"),
            *_spread("latency", ~sql.col("is_attempt")),
            *_spread("response", sql.col("is_attempt")),
        )
        # Of attempts alone nothing was settled.
        .join(sql.broadcast(_named(deliveries)), "named")
        .select(*(column for column in COLUMNS if column != "blocked_seconds"))
    )


def with_stops(measured: "DataFrame", stopped: "DataFrame", names: "DataFrame") -> "DataFrame":
    """Add how long the subscriptions blocked a lane in each hour, also in hours in which nothing of them was settled.

    `names` are those of the subscriptions that there are: `subscription_id`, `subscriber`, `subscription`, `event_type`, `endpoint`. A
    subscription that was renamed within the hour has several rows then: the first has the time.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    names = names.select("subscription_id", *(sql.col(name).alias(f"known_{name}") for name in _NAMES))
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
# Numbers in place of KEY: Spark groups and sorts by them in a fraction of the time. Only of one subscription in one hour may two `who`
# be taken for the same.
_GROUP = (*_HOURLY, "who")
_HOUR_MICROSECONDS = 3_600_000_000


def _settled(deliveries: "DataFrame") -> "DataFrame":
    """Return what counts of settlements, of which `value` is the latency in milliseconds."""
    from pyspark.sql import functions as sql

    waited = (sql.unix_micros("settled_at") - sql.unix_micros("published_at")) / 1000.0
    is_delivered = sql.col("status") == "DELIVERED"
    return deliveries.select(
        *_group(),
        sql.lit(False).alias("is_attempt"),
        # A replay is delivered long after the publication: that is no delay.
        sql.when(is_delivered & sql.col("replay_id").isNull(), waited).alias("value"),
        "status",
        "settled_at",
        sql.xxhash64(*_NAMES).alias("named"),
        (sql.col("attempts") > 1).alias("is_retried"),
        sql.when(is_delivered, sql.col("body_bytes")).otherwise(0).alias("bytes"),
        sql.lit(False).alias("is_failed"),
    )


def _tried(attempts: "DataFrame") -> "DataFrame":
    """Return what counts of attempts, in the columns of settlements: `value` is the milliseconds that the response took."""
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
    """The columns of _GROUP, of what was settled."""
    from pyspark.sql import functions as sql

    at = sql.unix_micros("settled_at")
    return [
        sql.timestamp_micros(at - sql.pmod(at, sql.lit(_HOUR_MICROSECONDS))).alias("hour"),
        sql.col("subscription_id"),
        sql.xxhash64("subscriber", "event_type").alias("who"),
    ]


def _named(deliveries: "DataFrame") -> "DataFrame":
    """Return the names that there are, by `named`."""
    from pyspark.sql import functions as sql

    return deliveries.select(*_NAMES).distinct().withColumn("named", sql.xxhash64(*_NAMES))


def _in_order(rows: "DataFrame") -> "DataFrame":
    """Add the `place` of each value, from 0, among those of its group's settlements or attempts, and the `last`; null stands behind that."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    group = Window.partitionBy(*_GROUP, "is_attempt")
    place = sql.row_number().over(group.orderBy(sql.asc_nulls_last("value"))) - 1
    return rows.withColumn("place", place).withColumn("last", sql.count("value").over(group) - 1)


def _spread(measure: str, is_of: "Column") -> "list[Column]":
    """Percentiles of values that are in order, exact, between two of them in proportion; and the largest. Null when there are none.

    Spark's own `percentile` counts each group's values in a table of its own, which takes four times as long.
    """
    from pyspark.sql import functions as sql

    def at(share: float) -> "Column":
        # Of the two values beside the place that is wanted each counts the more the nearer it is, and none of the others.
        part = 1 - sql.abs(sql.col("place") - sql.col("last") * share)
        return sql.sum(sql.when(is_of & (part > 0), part * sql.col("value")))

    found = [at(share).alias(f"{measure}_{name}") for name, share in _PERCENTILES.items()]
    return [*found, sql.max(sql.when(is_of, sql.col("value"))).alias(f"{measure}_max")]
