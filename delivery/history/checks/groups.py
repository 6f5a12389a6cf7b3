"""GROUP: exactly one endpoint of a QUEUE group takes the message. Pure transforms.

Never two DELIVERED; REDUNDANT only together with a DELIVERED. A group settled without a DELIVERED
delivery is explained: all endpoints refused the message, or their deliveries ended otherwise.
"""

from typing import TYPE_CHECKING

from delivery.history.checks.finding import GROUP, finding, sentence, with_broken
from delivery.history.checks.known_deliveries import OPEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def check_groups(known: "DataFrame") -> "DataFrame":
    """Return each group with `broken`: delivered twice, or REDUNDANT without a DELIVERED."""
    from pyspark.sql import functions as sql

    is_delivered, is_redundant = sql.col("status") == "DELIVERED", sql.col("status") == "REDUNDANT"
    counted = (
        known.filter("queue_group IS NOT NULL")
        .groupBy("message_id", "queue_group", sql.coalesce("replay_id", sql.lit(0)).alias("replay"))
        .agg(
            sql.count_if(is_delivered).alias("delivered"),
            sql.count_if(is_redundant).alias("redundant"),
            sql.count_if(sql.col("status").isin(*OPEN)).alias("open"),
            sql.min(sql.when(is_delivered, sql.col("id"))).alias("first_delivered"),
            sql.max(sql.when(is_delivered, sql.col("id"))).alias("last_delivered"),
            sql.min(sql.when(is_redundant, sql.col("id"))).alias("first_redundant"),
        )
    )
    return with_broken(counted, _twice(), _nobody())


def group_counts() -> "Column":
    """Return the numbers of checked and explained groups, as an aggregate of `check_groups`."""
    from pyspark.sql import functions as sql

    nobody = (sql.col("delivered") == 0) & (sql.col("open") == 0) & (sql.col("redundant") == 0)
    return sql.struct(
        sql.count("*").alias("checked"),
        sql.count_if(nobody).alias("nobody_took_it"),
        sql.count_if((sql.col("delivered") == 0) & (sql.col("open") > 0)).alias("open"),
    )


def _twice() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence(
        *(
            "msg_",
            sql.col("message_id"),
            " was delivered ",
            sql.col("delivered"),
            " times to its group ",
        ),
        *(sql.col("queue_group"), ", which is to take it once."),
    )
    first, last = sql.col("first_delivered"), sql.col("last_delivered")
    return finding(GROUP, text, when=sql.col("delivered") > 1, delivery_id=first, other=last)


def _nobody() -> "Column":
    from pyspark.sql import functions as sql

    text = sentence(
        *("msg_", sql.col("message_id"), " is REDUNDANT in its group ", sql.col("queue_group")),
        ", of which no delivery is DELIVERED.",
    )
    when = (sql.col("redundant") > 0) & (sql.col("delivered") == 0)
    return finding(GROUP, text, when=when, delivery_id=sql.col("first_redundant"))
