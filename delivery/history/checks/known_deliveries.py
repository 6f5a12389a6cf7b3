"""A row for each delivery of the whole history: the current state, and a summary of the attempts.

Pure transforms. The unarchived rows of PostgreSQL are newer than the archive's rows of the same
delivery, and include all attempts. If a delivery was settled more than once in the archive, the
newest settlement counts; the attempts are those of all settlements. Attempts without their delivery
make a row, too, whose `settlements` is 0.

The checks spend most of their time here. So the rows consist of numbers alone, which Spark
aggregates in place, without sorting: a status is stored in the lower bits of the time of
settlement, and the largest value is the newest.
"""

from typing import TYPE_CHECKING

from delivery.history.postgres.unarchived_rows import (
    FIXED,
    GROWING,
    NEVER,
    TRIED,
    UNARCHIVED,
    names,
)
from delivery.history.transforms.measures import STATUSES, SUCCESSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OPEN = ("PENDING", "IN_FLIGHT")
_CODES = (*OPEN, *STATUSES.values())
_BITS = 4
# The bits of a bigint without the sign.
_MOST_TIMES = 63


def known_deliveries(
    deliveries: "DataFrame", attempts: "DataFrame", unarchived: "DataFrame"
) -> "DataFrame":
    """Return FIXED, GROWING and TRIED of each delivery by `id`, the `status`, and the settlements.

    The latter are: the number of `settlements`; `copies` (surplus rows in the archive);
    `in_archive`; `is_untried` (settled without an attempt before a person sent it again); flags are
    1 or 0. `times` is how often it was settled according to the settlements' own numbers,
    `times_kept` how many of those settlements exist; null where older files have no numbers.
    `first_settled` is the time of the first settlement, in microseconds; NEVER while it is open.
    """
    from pyspark.sql import functions as sql

    rows = _archived(deliveries).unionByName(
        UNARCHIVED.checked(unarchived).withColumn("is_archived", sql.lit(0))
    )
    now = _now(rows)
    in_archive = _tried(attempts).select(
        "delivery_id", *(sql.col(name).alias(f"archived_{name}") for name in names(TRIED))
    )
    attempted = [
        sql.when(sql.col("is_archived") == 0, sql.col(name))
        .otherwise(sql.col(f"archived_{name}"))
        .alias(name)
        for name in names(TRIED)
    ]
    found = ["settlements", "copies", "in_archive", "is_untried"]
    return (
        # A partition of this side fits into memory (`partitioned_for`), so nothing is sorted.
        now.join(in_archive.hint("shuffle_hash"), now.id == in_archive.delivery_id, "full")
        .select(
            sql.coalesce("id", "delivery_id").alias("id"),
            *("status", *names(FIXED), *names(GROWING), *found, "times", "times_kept"),
            "first_settled",
            *attempted,
        )
        .fillna(0, ["tried", "numbers", "successes", "lost", *found])
    )


def places(deliveries: "DataFrame") -> "DataFrame":
    """Return `subscription_id` and `url` of archived deliveries, without a method prefix."""
    from pyspark.sql import functions as sql

    url = sql.regexp_replace("endpoint", "^[A-Za-z]+:(https?://)", "$1")
    return deliveries.select("subscription_id", url.alias("url")).distinct()


def is_in_turn() -> "Column":
    """Return whether an archived delivery is of a subscriber whose deliveries are sent in turn."""
    from pyspark.sql import functions as sql

    return (
        (sql.col("kind") == "TOPIC")
        & (sql.col("mode") == "PUSH")
        & (sql.col("processing") == "SERIAL")
        & sql.col("callback_id").isNull()
    )


def _archived(deliveries: "DataFrame") -> "DataFrame":
    """Return the archive's settlements as UNARCHIVED; columns about attempts are null."""
    from pyspark.sql import functions as sql

    made = {
        "is_in_turn": is_in_turn().cast("int"),
        "is_resent": (sql.col("redelivery") == "resubmitted").cast("int"),
        "expires_at": sql.lit(None).cast("timestamp"),
        "is_volatile": sql.lit(0),
    } | {column.name: sql.lit(None).cast(column.type) for column in TRIED}
    return deliveries.select(
        *(made.get(name, sql.col(name)).alias(name) for name in UNARCHIVED.names),
        sql.lit(1).alias("is_archived"),
    )


def _now(rows: "DataFrame") -> "DataFrame":
    """Return each delivery's state after the newest settlement, or while it is open."""
    from pyspark.sql import functions as sql

    code = sql.array_position(sql.array(*(sql.lit(status) for status in _CODES)), sql.col("status"))
    at = sql.unix_micros(sql.coalesce("settled_at", sql.lit(NEVER)))
    largest = [*names(FIXED), *names(GROWING), *names(TRIED)]
    kept = [sql.max(name).alias(name) for name in largest]
    # Partitioned by delivery once: both groupings and the join with attempts use it.
    once = (
        rows.withColumn("state", sql.shiftleft(at, _BITS) + code)
        .repartition("id")
        .groupBy("id", "state")
        .agg(
            *kept,
            sql.max("is_archived").alias("in_archive"),
            sql.min("is_archived").alias("is_archived"),
            (sql.count("*") - 1).alias("copies"),
        )
    )
    was_untried = (sql.count("*") > 1) & (sql.min("attempts") == 0)
    is_untried = (sql.max("is_resent") == 1) & (sql.max("attempts_before") == 0)
    return once.groupBy("id").agg(
        _status(sql.max("state")).alias("status"),
        *kept,
        sql.max("in_archive").alias("in_archive"),
        sql.min("is_archived").alias("is_archived"),
        sql.sum("copies").alias("copies"),
        sql.count("*").alias("settlements"),
        sql.shiftright(sql.min("state"), _BITS).alias("first_settled"),
        *_times(),
        (was_untried | is_untried).cast("int").alias("is_untried"),
    )


def _times() -> "list[Column]":
    """Return how often a delivery was settled, and how many of those settlements exist.

    Each settlement sets a bit; those beyond the number of bits share the last bit.
    """
    from pyspark.sql import functions as sql

    place = sql.least("settled_before", sql.lit(_MOST_TIMES - 1))
    is_settled = _code(sql.col("state")) > len(OPEN)
    # PySpark's shiftleft accepts only a constant number of bits.
    bit = sql.expr(f"shiftleft(1L, least(settled_before, {_MOST_TIMES - 1}))")
    is_numbered = sql.count("settled_before") == sql.count("*")
    return [
        sql.when(is_numbered, sql.max(place + is_settled.cast("int"))).alias("times"),
        sql.coalesce(sql.bit_count(sql.bit_or(sql.when(is_settled, bit))), sql.lit(0)).alias(
            "times_kept"
        ),
    ]


def _status(state: "Column") -> "Column":
    from pyspark.sql import functions as sql

    return sql.element_at(sql.array(*(sql.lit(status) for status in _CODES)), _code(state))


def _code(state: "Column") -> "Column":
    from pyspark.sql import functions as sql

    return state.bitwiseAND(sql.lit((1 << _BITS) - 1)).cast("int")


def _tried(attempts: "DataFrame") -> "DataFrame":
    """Return TRIED of each delivery with attempts in the archive."""
    from pyspark.sql import functions as sql

    is_success = sql.col("outcome").isin(*SUCCESSES)
    by_number = (
        attempts.select("delivery_id", "number", "started_at", "outcome")
        .repartition("delivery_id")
        .groupBy("delivery_id", "number")
        .agg(
            sql.count("*").alias("rows"),
            sql.min("started_at").alias("started_at"),
            sql.max(is_success.cast("int")).alias("is_success"),
            sql.max((sql.col("outcome") == "LOST").cast("int")).alias("is_lost"),
        )
    )
    found = {
        "tried": sql.sum("rows"),
        "numbers": sql.count("*"),
        "first_number": sql.min("number"),
        "last_number": sql.max("number"),
        "first_at": sql.min(sql.when(sql.col("number") == 1, sql.col("started_at"))),
        "successes": sql.sum("is_success"),
        "success_number": sql.min(sql.when(sql.col("is_success") == 1, sql.col("number"))),
        "lost": sql.sum("is_lost"),
    }
    return by_number.groupBy("delivery_id").agg(
        *(found[column.name].cast(column.type).alias(column.name) for column in TRIED)
    )
