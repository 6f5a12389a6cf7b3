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
    settled = _settled(deliveries)
    rows = _of_deliveries(settled).join(_of_attempts(settled, attempts), [*_GROUP], "left")
    return rows.fillna(0, [*COUNTS]).select(
        *("hour", "subscription_id", "names.*"),
        *(column for column in COLUMNS if column not in (*KEY, *_NAMES, "blocked_seconds")),
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
# Numbers in place of KEY, which Spark groups by in half the time; only of one subscription in one hour may two `who` be taken for the same.
_GROUP = ("hour", "subscription_id", "who")


def _settled(deliveries: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    waited = (sql.unix_micros("settled_at") - sql.unix_micros("published_at")) / 1000.0
    is_published = (sql.col("status") == "DELIVERED") & sql.col("replay_id").isNull()
    return deliveries.select(
        sql.date_trunc("hour", "settled_at").alias("hour"),
        "subscription_id",
        sql.xxhash64("subscriber", "event_type").alias("who"),
        sql.struct(*_NAMES).alias("names"),
        sql.col("id").alias("delivery_id"),
        "settled_at",
        "status",
        sql.col("attempts").alias("tries"),
        "body_bytes",
        # A replay is delivered long after the publication: that is no delay.
        sql.when(is_published, waited).alias("latency"),
    )


def _of_deliveries(settled: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    return settled.groupBy(*_GROUP).agg(
        sql.max_by("names", "settled_at").alias("names"),
        *(sql.count_if(sql.col("status") == status).alias(name) for name, status in STATUSES.items()),
        sql.count_if(sql.col("tries") > 1).alias("retried"),
        sql.sum(sql.when(sql.col("status") == "DELIVERED", sql.col("body_bytes")).otherwise(0)).alias(
            "bytes"
        ),
        *_spread("latency", "latency"),
    )


def _of_attempts(settled: "DataFrame", attempts: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as sql

    return (
        attempts.select("delivery_id", "settled_at", "outcome", "duration_ms")
        .join(settled.select("delivery_id", "settled_at", *_GROUP), ["delivery_id", "settled_at"])
        .groupBy(*_GROUP)
        .agg(
            sql.count("*").alias("attempts"),
            sql.count_if(~sql.col("outcome").isin(*SUCCESSES)).alias("failed_attempts"),
            *_spread("duration_ms", "response"),
        )
    )


def _spread(column: str, measure: str) -> "list[Column]":
    from pyspark.sql import functions as sql

    # In one array: each percentile apart would count the values anew.
    shares = sql.array(*(sql.lit(share) for share in _PERCENTILES.values()))
    places = sql.percentile(column, shares)
    found = [
        sql.get(places, sql.lit(nth)).alias(f"{measure}_{place}") for nth, place in enumerate(_PERCENTILES)
    ]
    return [*found, sql.max(sql.col(column).cast("double")).alias(f"{measure}_max")]
