"""Times when deliveries of a subscription were held, so later deliveries might overtake them.

A pure transform over the journal. A delivery is held while the subscription is INACTIVE, HELD or
SHADOW, the subscriber INACTIVE or HELD, while all sending is HELD, or while the URL is disabled or
frozen. Each of these takes effect, and ends, within two seconds: a run read before may be under
way.
"""

from typing import TYPE_CHECKING

from delivery.history.postgres.unarchived_rows import EVER, NEVER
from delivery.history.spark.frames import masked_url
from delivery.history.transforms.pieces import merged_intervals

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SLACK_SECONDS = 2
_TOGGLED = {"DEACTIVATED": True, "HELD": True, "SHADOW": True, "ACTIVATED": False}
_JUDGED = {"DISABLED": True, "FROZEN": True, "ENABLED": False}


def hold_entries(journal: "DataFrame") -> "DataFrame":
    """Return the few journal entries about holds."""
    from pyspark.sql import functions as sql

    return journal.filter(sql.col("kind").isin(*_TOGGLED, *_JUDGED)).select(
        "id", "at", "kind", "text", "subscription_id", "subscriber_id"
    )


def is_about_url() -> "Column":
    """Return whether a journal entry is about a URL."""
    from pyspark.sql import functions as sql

    return sql.col("kind").isin(*_JUDGED)


def is_about_many() -> "Column":
    """Return whether a journal entry is about a subscriber, or about all sending."""
    from pyspark.sql import functions as sql

    return sql.col("kind").isin(*_TOGGLED) & sql.col("subscription_id").isNull()


def times_of_holds(journal: "DataFrame", places: "DataFrame", owners: "DataFrame") -> "DataFrame":
    """Return the `holds` of each subscription, existing or deleted: sorted, disjoint intervals.

    `places` has `subscription_id` and `url`, `owners` has `subscription_id` and `subscriber_id`,
    each row once. A subscription whose first entry is ACTIVATED or ENABLED was held from the
    beginning.
    """
    from pyspark.sql import functions as sql

    inactive = _pieces(journal, _TOGGLED, sql.col("subscription_id")).withColumnRenamed(
        "key", "subscription_id"
    )
    many = journal.filter(is_about_many())
    whole = _pieces(many, _TOGGLED, sql.col("subscriber_id")).withColumnRenamed(
        "key", "subscriber_id"
    )
    everything = _pieces(many.filter("subscriber_id IS NULL"), _TOGGLED, sql.lit(0)).drop("key")
    # The text of an entry about a URL begins with the URL, masked unless the entry is old.
    url = masked_url(sql.substring_index("text", " ", 1))
    broken = _pieces(journal, _JUDGED, url).withColumnRenamed("key", "url")
    places = places.select("subscription_id", masked_url(sql.col("url")).alias("url")).distinct()
    pieces = (
        inactive.unionByName(broken.join(places, "url").drop("url"))
        .unionByName(whole.join(owners, "subscriber_id").drop("subscriber_id"))
        .unionByName(owners.drop("subscriber_id").crossJoin(everything))
    )
    return (
        merged_intervals(pieces)
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
