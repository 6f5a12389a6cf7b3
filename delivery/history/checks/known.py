"""One row for each delivery of the whole history: how it is now, and what its attempts come to. Pure transforms.

What PostgreSQL has that is not archived yet is newer than what the archive has of the same delivery, and has all of its attempts. Of what is settled
more than once in the archive the newest settlement counts; its attempts are those of all settlements. Attempts without their
delivery make a row, too, of which `settlements` is 0.

It is what the checks spend most of their time on. So it is made of numbers alone, which Spark aggregates in place, without sorting: a status
goes in the lower bits of the time it was settled at, and the largest is the newest.
"""

from typing import TYPE_CHECKING

from delivery.history.postgres.unarchived import FIXED, GROWING, NEVER, TRIED, UNARCHIVED, names
from delivery.history.transforms.measures import STATUSES, SUCCESSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OPEN = ("PENDING", "IN_FLIGHT")
_CODES = (*OPEN, *STATUSES.values())
_BITS = 4
# The bits of a number that are no sign.
_MOST_TIMES = 63


def known(deliveries: "DataFrame", attempts: "DataFrame", unarchived: "DataFrame") -> "DataFrame":
    """Return FIXED, GROWING and TRIED of each delivery by `id`, its `status`, and what its settlements come to.

    That is how many `settlements` there are, `copies` (rows of the archive too many), whether it is `in_archive`, and whether it `is_untried`:
    settled without an attempt before a person sent it again. Flags are 1 or 0. By the numbers that they have, it was settled
    `times`, of which `times_kept` are there; null where older files have no numbers.
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
        now.join(in_archive, now.id == in_archive.delivery_id, "full")
        .select(
            sql.coalesce("id", "delivery_id").alias("id"),
            *("status", *names(FIXED), *names(GROWING), *found, "times", "times_kept"),
            *attempted,
        )
        .fillna(0, ["tried", "numbers", "successes", "lost", *found])
    )


def places(deliveries: "DataFrame") -> "DataFrame":
    """Return `subscription_id` and `url`: where deliveries of the archive went, without the method that may be before it."""
    from pyspark.sql import functions as sql

    url = sql.regexp_replace("endpoint", "^[A-Za-z]+:(https?://)", "$1")
    return deliveries.select("subscription_id", url.alias("url")).distinct()


def _archived(deliveries: "DataFrame") -> "DataFrame":
    """Return UNARCHIVED, without anything about attempts, of each settlement in the archive."""
    from pyspark.sql import functions as sql

    is_in_turn = (
        (sql.col("kind") == "TOPIC")
        & (sql.col("mode") == "PUSH")
        & (sql.col("processing") == "SERIAL")
        & sql.col("callback_id").isNull()
    )
    made = {
        "is_in_turn": is_in_turn.cast("int"),
        "is_resent": (sql.col("redelivery") == "resubmitted").cast("int"),
        "expires_at": sql.lit(None).cast("timestamp"),
        "is_volatile": sql.lit(0),
    } | {column.name: sql.lit(None).cast(column.type) for column in TRIED}
    return deliveries.select(
        *(made.get(name, sql.col(name)).alias(name) for name in UNARCHIVED.names),
        sql.lit(1).alias("is_archived"),
    )


def _now(rows: "DataFrame") -> "DataFrame":
    """Return how each delivery is after its newest settlement, or while it is open."""
    from pyspark.sql import functions as sql

    code = sql.array_position(sql.array(*(sql.lit(status) for status in _CODES)), sql.col("status"))
    at = sql.unix_micros(sql.coalesce("settled_at", sql.lit(NEVER)))
    largest = [*names(FIXED), *names(GROWING), *names(TRIED)]
    kept = [sql.max(name).alias(name) for name in largest]
    # Laid by delivery at once: both groupings, and the join with attempts, find it so.
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
        *_times(),
        (was_untried | is_untried).cast("int").alias("is_untried"),
    )


def _times() -> "list[Column]":
    """How often each was settled, and how many of those times are there: each sets a bit. What is beyond those shares the last."""
    from pyspark.sql import functions as sql

    place = sql.least("settled_before", sql.lit(_MOST_TIMES - 1))
    is_settled = _code(sql.col("state")) > len(OPEN)
    # Python's shiftleft wants the number of bits to be the same for all.
    bit = sql.expr(f"shiftleft(1L, least(settled_before, {_MOST_TIMES - 1}))")
    is_numbered = sql.count("settled_before") == sql.count("*")
    return [
        sql.when(is_numbered, sql.max(place + is_settled.cast("int"))).alias("times"),
        sql.coalesce(sql.bit_count(sql.bit_or(sql.when(is_settled, bit))), sql.lit(0)).alias("times_kept"),
    ]


def _status(state: "Column") -> "Column":
    from pyspark.sql import functions as sql

    return sql.element_at(sql.array(*(sql.lit(status) for status in _CODES)), _code(state))


def _code(state: "Column") -> "Column":
    from pyspark.sql import functions as sql

    return state.bitwiseAND(sql.lit((1 << _BITS) - 1)).cast("int")


def _tried(attempts: "DataFrame") -> "DataFrame":
    """Return TRIED of each delivery of which the archive has attempts."""
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
