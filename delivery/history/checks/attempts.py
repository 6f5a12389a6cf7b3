"""TWICE, GAPS and STRAY: the rules for the attempts of each delivery. Pure transforms.

- TWICE: a delivery with a recorded success is never sent again (README, promise 3). Explained: a
  person settled it while it was being sent, and had it sent again later, although the history had
  the success by then.
- GAPS: the attempts are numbered from 1 to the number of attempts (README, promises 4 and 6). A
  lost attempt has a number, too. And all counted settlements exist: each is kept.
- STRAY: no attempt without a delivery, no duplicate row in the archive.
"""

from typing import TYPE_CHECKING

from delivery.history.checks.finding import GAPS, STRAY, TWICE, finding, sentence, with_broken

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def check_attempts(known: "DataFrame") -> "DataFrame":
    """Return each delivery with `broken` of these three kinds, at most one of each."""
    from pyspark.sql import functions as sql

    return with_broken(known.withColumn("delivery_id", sql.col("id")), _twice(), _gaps(), _stray())


def tried_counts() -> "Column":
    """Aggregate `known_deliveries` to the numbers of checked and explained deliveries."""
    from pyspark.sql import functions as sql

    is_settled = sql.col("settlements") > 0
    return sql.struct(
        sql.count_if(is_settled).alias("deliveries"),
        sql.coalesce(sql.sum("tried"), sql.lit(0)).alias("attempts"),
        sql.count_if((sql.col("successes") > 0) & is_settled).alias("succeeded"),
        sql.count_if(_was_sent_after_success() & _is_persons()).alias("sent_again"),
        sql.coalesce(sql.sum("lost"), sql.lit(0)).alias("lost"),
    )


def _twice() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence(
        *(
            "Attempt ",
            sql.col("success_number"),
            " of delivery ",
            sql.col("id"),
            " was a success, and it was sent ",
        ),
        *(
            "again: there are ",
            sql.col("tried"),
            " attempts, ",
            sql.col("successes"),
            " of them successes.",
        ),
    )
    return finding(TWICE, text, when=_was_sent_after_success() & ~_is_persons())


def _was_sent_after_success() -> "Column":
    from pyspark.sql import functions as sql

    is_followed = sql.col("last_number") > sql.col("success_number")
    return sql.coalesce(is_followed | (sql.col("successes") > 1), sql.lit(False))


def _is_persons() -> "Column":
    from pyspark.sql import functions as sql

    return sql.coalesce(sql.col("success_number") <= sql.col("attempts_before"), sql.lit(False))


def _gaps() -> "Column":
    from pyspark.sql import functions as sql

    count = sql.col("attempts")
    is_numbered = (sql.col("first_number") == 1) & (sql.col("last_number") == count)
    is_whole = (sql.col("numbers") == count) & ((count == 0) | is_numbered)
    numbered = sentence(", numbered from ", sql.col("first_number"), " to ", sql.col("last_number"))
    text = sentence(
        *(
            "Delivery ",
            sql.col("id"),
            " counts ",
            count,
            " attempts, and its history has ",
            sql.col("numbers"),
        ),
        *(sql.coalesce(numbered, sql.lit("")), "."),
    )
    lacks = sql.coalesce(sql.col("times_kept") < sql.col("times"), sql.lit(False))
    settled = sentence(
        *(
            "Delivery ",
            sql.col("id"),
            " was settled ",
            sql.col("times"),
            " times, and the history has ",
        ),
        *(sql.col("times_kept"), " of them."),
    )
    explanation = sql.when(lacks, settled).otherwise(text)
    return finding(GAPS, explanation, when=(sql.col("settlements") > 0) & (lacks | ~is_whole))


def _stray() -> "Column":
    from pyspark.sql import functions as sql

    is_nowhere, is_copied = sql.col("settlements") == 0, sql.col("copies") > 0
    is_tried_twice = sql.col("tried") > sql.col("numbers")
    text = (
        sql.when(
            is_nowhere,
            sentence(
                "The archive has attempts of delivery ", sql.col("id"), ", but not the delivery."
            ),
        )
        .when(
            is_copied,
            sentence(
                "The archive has a settlement of delivery ", sql.col("id"), " more than once."
            ),
        )
        .otherwise(
            sentence("The archive has an attempt of delivery ", sql.col("id"), " more than once.")
        )
    )
    return finding(STRAY, text, when=is_nowhere | is_copied | is_tried_twice)
