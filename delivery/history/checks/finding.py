"""Findings of checks: each row of a frame has the findings in `broken`, usually an empty array."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMNS = ("kind", "text", "message_id", "delivery_id", "other_delivery_id")

ORDER = "ORDER"
TWICE = "TWICE"
OWED = "OWED"
GROUP = "GROUP"
GAPS = "GAPS"
STRAY = "STRAY"
FILES = "FILES"
KINDS = (ORDER, TWICE, OWED, GROUP, GAPS, STRAY, FILES)


def finding(
    kind: "str | Column",
    text: "Column",
    *,
    when: "Column",
    delivery_id: "Column | None" = None,
    other: "Column | None" = None,
) -> "Column":
    """Return a finding about the row's message and delivery; null unless `when`.

    The delivery is the row's `delivery_id` unless another id is passed.
    """
    from pyspark.sql import functions as sql

    nobody = sql.lit(None).cast("bigint")
    return sql.when(
        when,
        sql.struct(
            (sql.lit(kind) if isinstance(kind, str) else kind).alias("kind"),
            text.alias("text"),
            sql.col("message_id").alias("message_id"),
            (sql.col("delivery_id") if delivery_id is None else delivery_id).alias("delivery_id"),
            (nobody if other is None else other).alias("other_delivery_id"),
        ),
    )


def sentence(*parts: "str | Column") -> "Column":
    """Return a sentence; strings are literal text, columns are values."""
    from pyspark.sql import functions as sql

    return sql.concat(
        *(sql.lit(part) if isinstance(part, str) else part.cast("string") for part in parts)
    )


def utc_text(column: "str | Column") -> "Column":
    """Return a time in UTC as people read it; the session's time zone is UTC."""
    from pyspark.sql import functions as sql

    return sql.date_format(column, "yyyy-MM-dd HH:mm:ss.SSSSSS 'UTC'")


def with_broken(frame: "DataFrame", *kinds: "Column") -> "DataFrame":
    """Add `broken`: the findings without nulls."""
    from pyspark.sql import functions as sql

    return frame.withColumn("broken", sql.array_compact(sql.array(*kinds)))


def broken_counts() -> "Column":
    """Return the number of findings of each kind, as an aggregate."""
    from pyspark.sql import functions as sql

    def count(kind: str) -> "Column":
        broken = sql.filter("broken", lambda finding: finding["kind"] == kind)
        return sql.coalesce(sql.sum(sql.size(broken)), sql.lit(0)).alias(kind)

    return sql.struct(*(count(kind) for kind in KINDS))


def findings(frame: "DataFrame") -> "DataFrame":
    """Return the findings of a frame with `broken`, each in a row."""
    return frame.selectExpr("inline(broken)").select(*COLUMNS)
