"""When deliveries of a subscription were held back, so that later ones might overtake them: a pure transform over the journal.

Held is what is of an INACTIVE or HELD subscription, or subscriber, all while all sending is HELD, and what goes to a URL that is
disabled or frozen. Each takes effect within two seconds, and so does its end: a run that was read before may be under way.
"""

from typing import TYPE_CHECKING

from delivery.history.postgres.unarchived import EVER, NEVER
from delivery.history.transforms.pieces import merged

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLACK_SECONDS = 2
_TOGGLED = {"DEACTIVATED": True, "HELD": True, "ACTIVATED": False}
_JUDGED = {"DISABLED": True, "FROZEN": True, "ENABLED": False}


def about_holds(journal: "DataFrame") -> "DataFrame":
    """Return of the journal what tells of this: little."""
    from pyspark.sql import functions as sql

    return journal.filter(sql.col("kind").isin(*_TOGGLED, *_JUDGED)).select(
        "id", "at", "kind", "text", "subscription_id", "subscriber_id"
    )


def about_urls(journal: "DataFrame") -> "DataFrame":
    """Return of the journal what tells of URLs."""
    from pyspark.sql import functions as sql

    return journal.filter(sql.col("kind").isin(*_JUDGED))


def about_many(journal: "DataFrame") -> "DataFrame":
    """Return of the journal what tells of subscribers, and of all sending."""
    from pyspark.sql import functions as sql

    return journal.filter(sql.col("kind").isin(*_TOGGLED) & sql.col("subscription_id").isNull())


def held(journal: "DataFrame", places: "DataFrame", owners: "DataFrame") -> "DataFrame":
    """Return, for each subscription that ever was, `holds`: pieces of time in order, that neither overlap nor meet.

    `places` are `subscription_id` and `url`, `owners` are `subscription_id` and `subscriber_id`, each once. What begins with ACTIVE or enabled was held since ever.
    """
    from pyspark.sql import functions as sql

    inactive = _pieces(journal, _TOGGLED, sql.col("subscription_id")).withColumnRenamed(
        "key", "subscription_id"
    )
    many = about_many(journal)
    whole = _pieces(many, _TOGGLED, sql.col("subscriber_id")).withColumnRenamed("key", "subscriber_id")
    everything = _pieces(many.filter("subscriber_id IS NULL"), _TOGGLED, sql.lit(0)).drop("key")
    # An entry about a URL begins with it.
    broken = _pieces(journal, _JUDGED, sql.substring_index("text", " ", 1)).withColumnRenamed("key", "url")
    pieces = (
        inactive.unionByName(broken.join(places, "url").drop("url"))
        .unionByName(whole.join(owners, "subscriber_id").drop("subscriber_id"))
        .unionByName(owners.drop("subscriber_id").crossJoin(everything))
    )
    return (
        merged(pieces)
        .groupBy("subscription_id")
        .agg(sql.sort_array(sql.collect_list(sql.struct("since", "until"))).alias("holds"))
    )


def _pieces(journal: "DataFrame", kinds: dict[str, bool], key: "Column") -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    order = Window.partitionBy("key").orderBy("at", "id")
    begins = sql.col("kind").isin(*(kind for kind, is_held in kinds.items() if is_held))
    ends = sql.coalesce(sql.lead("at").over(order), sql.lit(NEVER))
    slack = sql.expr(f"INTERVAL {SLACK_SECONDS} SECONDS")
    entries = (
        journal.filter(sql.col("kind").isin(*kinds))
        .select(key.alias("key"), "id", "at", "kind")
        .filter("key IS NOT NULL")
    )
    is_first = sql.lag("at").over(order).isNull()
    return (
        entries.withColumn("begins", begins)
        .withColumn("since", sql.when(begins, sql.col("at")).otherwise(sql.lit(EVER)))
        .withColumn("until", sql.when(begins, ends).otherwise(sql.col("at")) + slack)
        .withColumn("counts", begins | is_first)
        .filter("counts")
        .select("key", "since", "until")
    )
