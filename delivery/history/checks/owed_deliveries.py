"""OWED, and STRAY of messages: a message has every delivery it was accepted with.

README, promises 1 and 6; pure transforms. Deliveries created later by a replay do not count.
Nothing can be proven of messages accepted before this number was recorded.
"""

from typing import TYPE_CHECKING

from delivery.history.checks.finding import OWED, STRAY, finding, sentence, with_broken

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def check_owed(messages: "DataFrame", known: "DataFrame") -> "DataFrame":
    """Return each archived message, and each known only from its deliveries, with `broken`."""
    from pyspark.sql import functions as sql

    published = messages.groupBy("id").agg(
        sql.count("*").alias("rows"), sql.max("owed").alias("owed")
    )
    has = (
        known.filter("settlements > 0")
        .groupBy("message_id")
        .agg(
            sql.count_if(sql.col("replay_id").isNull()).alias("deliveries"),
            sql.min("id").alias("delivery_id"),
            # For a never archived delivery, PostgreSQL guarantees the message.
            sql.min(sql.when(sql.col("in_archive") == 1, sql.col("id"))).alias(
                "archived_delivery_id"
            ),
        )
    )
    compared = published.join(
        has.hint("shuffle_hash"), published.id == has.message_id, "full"
    ).select(
        sql.coalesce("id", "message_id").alias("message_id"),
        *("delivery_id", "archived_delivery_id", "owed"),
        sql.coalesce("rows", sql.lit(0)).alias("rows"),
        sql.coalesce("deliveries", sql.lit(0)).alias("deliveries"),
    )
    return with_broken(compared, _owed(), _twice(), _nowhere())


def owed_counts() -> "Column":
    """Return the numbers of checked and unprovable messages, as an aggregate of `check_owed`."""
    from pyspark.sql import functions as sql

    is_archived = sql.col("rows") > 0
    return sql.struct(
        sql.count_if(is_archived).alias("messages"),
        sql.count_if(is_archived & sql.col("owed").isNotNull()).alias("checked"),
        sql.count_if(is_archived & sql.col("owed").isNull()).alias("not_provable"),
    )


def _owed() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence(
        *(
            "msg_",
            sql.col("message_id"),
            " was accepted with ",
            sql.col("owed"),
            " deliveries, and the history has ",
        ),
        *(sql.col("deliveries"), "."),
    )
    return finding(
        OWED, text, when=(sql.col("rows") > 0) & (sql.col("deliveries") != sql.col("owed"))
    )


def _twice() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence("The archive has msg_", sql.col("message_id"), " more than once.")
    return finding(STRAY, text, when=sql.col("rows") > 1)


def _nowhere() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence(
        "The archive has deliveries of msg_", sql.col("message_id"), ", but not the message."
    )
    archived = sql.col("archived_delivery_id")
    return finding(
        STRAY, text, when=(sql.col("rows") == 0) & archived.isNotNull(), delivery_id=archived
    )
