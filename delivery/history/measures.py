"""What the history measures of each hour, subscriber, subscription and event type: pure transforms.

Each settlement belongs to the hour of its `settled_at`, with the attempts that the archive has of it. One that a person sent again was
settled more than once: each time counts in its own hour, for that is what happened then. Percentiles are exact.
"""

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

    rows = (
        _of_deliveries(_settled(deliveries))
        .join(_of_attempts(_tried(attempts)), [*_GROUP], "left")
        .join(_named(deliveries), "named")
    )
    return (
        rows.fillna(0, [*COUNTS])
        .withColumn("hour", sql.timestamp_seconds(sql.col("hour") * _HOUR_SECONDS))
        .select(*(column for column in COLUMNS if column != "blocked_seconds"))
    )


def with_stops(measured: "DataFrame", stopped: "DataFrame", names: "DataFrame") -> "DataFrame":
    """Add how long the subscriptions blocked a lane in each hour, also in hours in which nothing of them was settled.

    `names` are those of the subscriptions that there are: `subscription_id`, `subscriber`, `subscription`, `event_type`, `endpoint`. A
    subscription that was renamed within the hour has several rows then: the first has the time.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    once = ["hour", "subscription_id", "place"]
    names = names.select("subscription_id", *(sql.col(name).alias(f"known_{name}") for name in _NAMES))
    place = sql.row_number().over(
        Window.partitionBy("hour", "subscription_id").orderBy("subscriber", "event_type")
    )
    known = [sql.coalesce(name, f"known_{name}", sql.lit("")).alias(name) for name in _NAMES]
    return (
        measured.withColumn("place", place)
        .join(stopped.withColumn("place", sql.lit(1)), once, "full")
        .join(names, "subscription_id", "left")
        .select(*(column for column in COLUMNS if column not in _NAMES), *known)
        .fillna(0, [*COUNTS, "blocked_seconds"])
        .select(*COLUMNS)
    )


_NAMES = ("subscriber", "subscription", "event_type", "endpoint")
# Numbers in place of KEY: Spark groups and sorts by them in a fraction of the time. Only of one subscription in one hour may two `who`
# be taken for the same.
_GROUP = ("hour", "subscription_id", "who")
_HOUR_SECONDS = 3_600


def _group() -> "list[Column]":
    """The columns of _GROUP, of what was settled."""
    from pyspark.sql import functions as sql

    hour = sql.floor(sql.unix_micros("settled_at") / sql.lit(_HOUR_SECONDS * 1_000_000))
    return [
        hour.alias("hour"),
        sql.col("subscription_id"),
        sql.xxhash64("subscriber", "event_type").alias("who"),
    ]


def _settled(deliveries: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    waited = (sql.unix_micros("settled_at") - sql.unix_micros("published_at")) / 1000.0
    is_published = (sql.col("status") == "DELIVERED") & sql.col("replay_id").isNull()
    return deliveries.select(
        *_group(),
        sql.xxhash64(*_NAMES).alias("named"),
        "settled_at",
        "status",
        sql.col("attempts").alias("tries"),
        "body_bytes",
        # A replay is delivered long after the publication: that is no delay.
        sql.when(is_published, waited).alias("latency"),
    )


def _tried(attempts: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    return attempts.select(*_group(), "outcome", sql.col("duration_ms").cast("double").alias("duration_ms"))


def _of_deliveries(settled: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    bytes_ = sql.when(sql.col("status") == "DELIVERED", sql.col("body_bytes")).otherwise(0)
    return (
        _in_order(settled, "latency")
        .groupBy(*_GROUP)
        .agg(
            sql.max_by("named", "settled_at").alias("named"),
            *(sql.count_if(sql.col("status") == status).alias(name) for name, status in STATUSES.items()),
            sql.count_if(sql.col("tries") > 1).alias("retried"),
            sql.sum(bytes_).alias("bytes"),
            *_spread("latency", "latency"),
        )
    )


def _of_attempts(tried: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    return (
        _in_order(tried, "duration_ms")
        .groupBy(*_GROUP)
        .agg(
            sql.count("*").alias("attempts"),
            sql.count_if(~sql.col("outcome").isin(*SUCCESSES)).alias("failed_attempts"),
            *_spread("duration_ms", "response"),
        )
    )


def _named(deliveries: "DataFrame") -> "DataFrame":
    """Return the names that there are, by `named`."""
    from pyspark.sql import functions as sql

    return deliveries.select(*_NAMES).distinct().withColumn("named", sql.xxhash64(*_NAMES))


def _in_order(rows: "DataFrame", column: str) -> "DataFrame":
    """Add the `place` of each value of a column within its group, from 0, and the `last` place; null has its place behind that."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    group = Window.partitionBy(*_GROUP)
    place = sql.row_number().over(group.orderBy(sql.asc_nulls_last(column))) - 1
    return rows.withColumn("place", place).withColumn("last", sql.count(column).over(group) - 1)


def _spread(column: str, measure: str) -> "list[Column]":
    """Percentiles of a column that is in order, exact, between two values in proportion; and its largest value.

    Spark's own `percentile` counts each group's values in a table of its own, which takes four times as long.
    """
    from pyspark.sql import functions as sql

    value, place = sql.col(column), sql.col("place")

    def at(share: float) -> "Column":
        wanted = sql.col("last") * share
        below, above = sql.floor(wanted), sql.ceil(wanted)
        lower, upper = sql.max(sql.when(place == below, value)), sql.max(sql.when(place == above, value))
        part = sql.max(wanted - below)
        return sql.when(part == 0, lower).otherwise((1 - part) * lower + part * upper)

    found = [at(share).alias(f"{measure}_{name}") for name, share in _PERCENTILES.items()]
    return [*found, sql.max(column).alias(f"{measure}_max")]
