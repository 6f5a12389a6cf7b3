"""Comparison of another broker's log with Inturn's deliveries: pure transforms.

Both sides have rows of a subscription and a key, a value in the message itself. A row of each side
stands for all: the first success, otherwise the last row. A subscription unknown to the log is
empty on both sides; then a key is DELIVERED if any subscription got it.

A SHADOW delivery has no outcome: key and order are compared, and the status equals every other.

Order is compared among keys DELIVERED on both sides: a key is in another order if Inturn delivered
a key before it, and the other broker later. Equal times there prove no order.
"""

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from delivery.history.schemas import Column, Table

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

SAME = "SAME"
ONLY_THERE, ONLY_HERE = "ONLY_THERE", "ONLY_HERE"
OTHER_STATUS, OTHER_ORDER = "OTHER_STATUS", "OTHER_ORDER"
DIFFERENCES = (ONLY_THERE, ONLY_HERE, OTHER_STATUS, OTHER_ORDER)
DELIVERED, SHADOW = "DELIVERED", "SHADOW"
# Not sent, and no failure: another broker's log need not mention them.
UNSENT = ("REDUNDANT", "CANCELLED", "DUPLICATE")

COMPARISON = Table(
    "comparison",
    key=("subscription", "key"),
    at="at_there",
    columns=(
        Column("result", "string", "SAME, ONLY_THERE, ONLY_HERE, OTHER_STATUS or OTHER_ORDER"),
        Column("subscription", "string", "subscriber/subscription; empty: all together"),
        Column("key", "string", "the value by which the rows of both sides belong together"),
        Column("status_there", "string", "empty: the log has none", is_nullable=True),
        Column("status_here", "string", "", is_nullable=True),
        Column(
            "at_there",
            "timestamp",
            "of the first success, otherwise of the last row",
            is_nullable=True,
        ),
        Column("at_here", "timestamp", "the same of Inturn", is_nullable=True),
        Column(
            "overtook",
            "string",
            "a key that Inturn delivered later, and the log earlier",
            is_nullable=True,
        ),
        Column(
            "message_id",
            "bigint",
            "ONLY_THERE: the message of that key, if there is one",
            is_nullable=True,
        ),
        Column("delivery_id", "bigint", "", is_nullable=True),
    ),
)
_KEY = ("subscription", "key")


def our_rows(deliveries: "DataFrame", attempts: "DataFrame", keyed: "DataFrame") -> "DataFrame":
    """Return `subscription`, `key`, `status`, `at`, `message_id` and `delivery_id` of settlements.

    `keyed` has `message_id` and `key`. The time of a settlement is the beginning of the last
    attempt; without attempts it is `settled_at`. Requests to a callback's URL are left out: they
    are answers.
    """
    from pyspark.sql import functions as sql

    begun = attempts.groupBy(sql.col("delivery_id").alias("id"), "settled_at").agg(
        sql.max("started_at").alias("started_at")
    )
    return (
        deliveries.filter("callback_id IS NULL")
        .join(keyed, "message_id")
        .join(begun, ["id", "settled_at"], "left")
        .select(
            sql.concat_ws("/", "subscriber", "subscription").alias("subscription"),
            "key",
            "status",
            sql.coalesce("started_at", "settled_at").alias("at"),
            "message_id",
            sql.col("id").alias("delivery_id"),
        )
    )


def comparison_rows(there: "DataFrame", here: "DataFrame", keyed: "DataFrame") -> "DataFrame":
    """Return COMPARISON, a row for each subscription and key of either side."""
    from pyspark.sql import functions as sql

    ours = _by_key(here, "message_id", "delivery_id")
    known = keyed.groupBy("key").agg(sql.min("message_id").alias("known_id"))
    rows = (
        _on_side(_by_key(there), "there")
        .join(_on_side(ours, "here"), [*_KEY], "full")
        .join(known, "key", "left")
        .withColumn("message_id", sql.coalesce("message_id", "known_id"))
        .filter(
            sql.col("is_there").isNotNull()
            | ~sql.coalesce(sql.col("status_here").isin(*UNSENT), sql.lit(False))
        )
    )
    return COMPARISON.checked(_with_order(rows).withColumn("result", _result()))


def rows_within(rows: "DataFrame", *, since: object = None, until: object = None) -> "DataFrame":
    """Return the rows of COMPARISON from `since` to before `until`.

    The time of the other broker decides, so a key near a bound is not on a single side; without it,
    Inturn's time. Rows without any time are kept.
    """
    from pyspark.sql import functions as sql

    at = sql.coalesce("at_there", "at_here")
    if since is not None:
        rows = rows.filter(at.isNull() | (at >= sql.lit(since)))
    return rows if until is None else rows.filter(at.isNull() | (at < sql.lit(until)))


def _by_key(rows: "DataFrame", *more: str) -> "DataFrame":
    """Return a row for each subscription and key: the first DELIVERED, otherwise the last."""
    from pyspark.sql import functions as sql

    is_other = ~_may_be_delivered("status")
    at = sql.coalesce(sql.unix_micros("at"), sql.lit(0))
    rank = sql.struct(is_other, sql.when(is_other, -at).otherwise(at), *more)
    first = sql.min_by(sql.struct("status", "at", *more), rank).alias("first")
    return rows.groupBy(*_KEY).agg(first).select(*_KEY, "first.*")


def _may_be_delivered(status: str) -> "SparkColumn":
    """Whether the row counts as delivered: by the status, or because it has none, or is SHADOW."""
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.col(status).isin(DELIVERED, SHADOW), sql.lit(True))


def _on_side(rows: "DataFrame", side: str) -> "DataFrame":
    from pyspark.sql import functions as sql

    named = rows.withColumnsRenamed({"status": f"status_{side}", "at": f"at_{side}"})
    return named.withColumn(f"is_{side}", sql.lit(True))


def _with_order(rows: "DataFrame") -> "DataFrame":
    """Add `overtook`: for a key in another order, the latest key here which was earlier there."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    is_ordered = reduce(
        and_,
        (
            _may_be_delivered("status_there"),
            _may_be_delivered("status_here"),
            sql.col("at_there").isNotNull(),
            sql.col("at_here").isNotNull(),
        ),
    )
    earlier_there = (
        Window.partitionBy("subscription", "is_ordered")
        .orderBy(sql.unix_micros("at_there"))
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    latest = sql.max(sql.struct("at_here", "key")).over(earlier_there)
    return (
        rows.withColumn("is_ordered", sql.coalesce(is_ordered, sql.lit(False)))
        .withColumn("latest", latest)
        .withColumn(
            "overtook",
            sql.when(
                sql.col("is_ordered") & (sql.col("latest.at_here") > sql.col("at_here")),
                sql.col("latest.key"),
            ),
        )
    )


def _result() -> "SparkColumn":
    from pyspark.sql import functions as sql

    return (
        sql.when(sql.col("is_here").isNull(), ONLY_THERE)
        .when(sql.col("is_there").isNull(), ONLY_HERE)
        .when(
            (sql.col("status_there") != sql.col("status_here"))
            & (sql.col("status_here") != SHADOW),
            OTHER_STATUS,
        )
        .when(sql.col("overtook").isNotNull(), OTHER_ORDER)
        .otherwise(SAME)
    )
