"""ORDER, and GAPS of untried deliveries: first attempts happen in publication order.

Pure transforms for promise 2 of README. For each delivery there is a time `due_at` until which no
later delivery of the lane may be tried. `history/README.md` says when a delivery is certainly
earlier than another, which overtaking is explained, and how the passes find violations.
"""

from typing import TYPE_CHECKING

from delivery.history.checks.finding import GAPS, ORDER, finding, sentence, utc_text, with_broken
from delivery.history.postgres.unarchived_rows import NEVER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LANE = ("subscriber_id", "replay")
_NAMED = ("message_id", "delivery_id", "transaction_id", "seen_before", "first_at")


def ordered_deliveries(known: "DataFrame", held: "DataFrame") -> "DataFrame":
    """Return the deliveries with a promised order: those tried, and those waiting to be tried.

    Adds `replay` (0: none), `holds` (those of the delivery), `due_at`, and `keeps_place`, false if
    a later delivery may overtake it by an explanation.
    """
    from pyspark.sql import functions as sql

    is_promised = (sql.col("is_in_turn") == 1) & (
        sql.col("first_at").isNotNull() | (sql.col("status") == "PENDING")
    )
    end = sql.coalesce("first_at", "expires_at", sql.lit(NEVER))
    holds = sql.filter(
        sql.col("holds"),
        lambda hold: (hold["since"] < end) & (hold["until"] > sql.col("published_at")),
    )
    none = sql.expr("CAST(array() AS ARRAY<STRUCT<since: TIMESTAMP, until: TIMESTAMP>>)")
    return (
        known.filter(is_promised)
        .join(held, "subscription_id", "left")
        .select(
            "subscriber_id",
            sql.coalesce("replay_id", sql.lit(0)).alias("replay"),
            "message_id",
            sql.col("id").alias("delivery_id"),
            "transaction_id",
            "seen_before",
            "published_at",
            "first_at",
            sql.coalesce(holds, none).alias("holds"),
            end.alias("end"),
            sql.col("is_untried").alias("was_untried"),
            ((sql.col("is_untried") == 0) & (sql.col("is_volatile") == 0)).alias("keeps_place"),
        )
        .withColumn("due_at", sql.least("end", sql.get("holds", sql.lit(0))["since"]))
    )


def mark_suspects(in_turn: "DataFrame") -> "DataFrame":
    """Add `is_suspect`: tried before one of a message with a smaller id was tried or ended untried.

    A message accepted before another has the smaller id, too. So every late delivery is suspect,
    and a sound history has few suspects.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    before = (
        Window.partitionBy(*_LANE).orderBy("message_id").rangeBetween(Window.unboundedPreceding, -1)
    )
    stands = sql.when(sql.col("keeps_place") & _is_proof(), sql.col("end"))
    is_suspect = (sql.max(stands).over(before) > sql.col("first_at")) & _is_proof()
    return in_turn.withColumn("is_suspect", sql.coalesce(is_suspect, sql.lit(False)))


def deliveries_of_suspect_lanes(turns: "DataFrame") -> "DataFrame":
    """Return all deliveries in the lanes with a suspect: the input of `late_deliveries`."""
    return turns.join(turns.filter("is_suspect").select(*_LANE).distinct(), [*_LANE], "left_semi")


def late_deliveries(in_turn: "DataFrame") -> "DataFrame":
    """Return the deliveries tried before others were due, with the latest `due_at` of those."""
    rows = in_turn.filter(_is_proof())
    return _by_transaction(rows).unionByName(_since_held(rows)).dropDuplicates(["delivery_id"])


def overtaken_deliveries(late: "DataFrame", in_turn: "DataFrame") -> "DataFrame":
    """Return the late deliveries with the overtaken delivery, as `broken`."""
    from pyspark.sql import functions as sql

    due = in_turn.filter("keeps_place").select(
        *_LANE,
        *(
            sql.col(name).alias(f"due_{name}")
            for name in ("message_id", "delivery_id", "transaction_id", "first_at")
        ),
        sql.inline(_dues()),
    )
    is_earlier = (sql.col("due_transaction_id") < sql.col("seen_before")) | (
        (sql.col("due_transaction_id") == sql.col("transaction_id"))
        & (sql.col("due_message_id") < sql.col("message_id"))
    )
    found = late.join(due, [*_LANE, "due_at"]).filter(is_earlier).dropDuplicates(["delivery_id"])
    is_waiting, other = sql.col("due_first_at").isNull(), sql.col("due_delivery_id")
    waits = sql.when(is_waiting, "which waits still and is not held").otherwise(
        sentence("which was first tried at ", utc_text("due_first_at"))
    )
    text = sentence(
        *("Delivery ", sql.col("delivery_id"), " was first tried at ", utc_text("first_at")),
        *(", before delivery ", other, ", published before it, ", waits, "."),
    )
    kind = sql.when(is_waiting, GAPS).otherwise(ORDER)
    return with_broken(found, finding(kind, text, when=sql.lit(True), other=other))


def order_counts() -> "Column":
    """Aggregate `mark_suspects` to the numbers of checked, suspect and explained attempts."""
    from pyspark.sql import functions as sql

    return sql.struct(
        sql.count_if(_is_proof() & sql.col("first_at").isNotNull()).alias("checked"),
        sql.count_if("is_suspect").alias("suspects"),
        sql.count_if(sql.size("holds") > 0).alias("held"),
        sql.count_if(sql.col("was_untried") == 1).alias("sent_again"),
        sql.count_if(~_is_proof()).alias("not_provable"),
    )


def _is_proof() -> "Column":
    from pyspark.sql import functions as sql

    return sql.col("transaction_id").isNotNull() & sql.col("seen_before").isNotNull()


def _by_transaction(rows: "DataFrame") -> "DataFrame":
    """Return deliveries tried before an earlier one was due, by transaction and then by batch."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    # `question` compares a delivery with everything seen by the delivery's transaction: it sorts
    # before the rows of transaction `seen_before`. `written` adds the delivery at its own
    # transaction, in the order of the batch.
    question = _event(place="seen_before", nth=sql.lit(0), stands=sql.lit(None))
    stands = sql.when(sql.col("keeps_place"), sql.col("due_at"))
    written = _event(place="transaction_id", nth=sql.col("message_id"), stands=stands)
    events = rows.select(*_LANE, *_NAMED, sql.inline(sql.array(question, written)))
    before = (
        Window.partitionBy(*_LANE)
        .orderBy("place", "nth")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    # Excludes the same message: a subscriber may get several deliveries of it, in any order.
    batch = (
        Window.partitionBy(*_LANE, "place")
        .orderBy("nth")
        .rangeBetween(Window.unboundedPreceding, -1)
    )
    return (
        events.withColumn("earlier", sql.max("stands").over(before))
        .withColumn("in_batch", sql.max("stands").over(batch))
        .withColumn(
            "due_at",
            sql.when(sql.col("nth") == 0, sql.col("earlier")).otherwise(sql.col("in_batch")),
        )
        .filter("first_at IS NOT NULL AND due_at > first_at")
        .select(*_LANE, *_NAMED, "due_at")
    )


def _event(*, place: str, nth: "Column", stands: "Column") -> "Column":
    from pyspark.sql import functions as sql

    return sql.struct(
        sql.col(place).alias("place"),
        nth.cast("bigint").alias("nth"),
        stands.cast("timestamp").alias("stands"),
    )


def _since_held(rows: "DataFrame") -> "DataFrame":
    """Return deliveries published after another's hold, and tried before that one was due."""
    from pyspark.sql import functions as sql

    after = (
        rows.filter("keeps_place AND size(holds) > 0")
        .select(*_LANE, "transaction_id", sql.inline(_dues()))
        # The time before the first hold is handled by `_by_transaction`.
        .filter("since IS NOT NULL")
        .groupBy(*_LANE, "since")
        .agg(
            sql.max("due_at").alias("due_at"),
            sql.max("transaction_id").alias("last_transaction_id"),
        )
        .filter("due_at > since")
    )
    is_later = (
        (sql.col("published_at") >= sql.col("since"))
        & (sql.col("first_at") < sql.col("due_at"))
        & (sql.col("last_transaction_id") < sql.col("seen_before"))
    )
    tried = rows.filter("first_at IS NOT NULL").select(*_LANE, *_NAMED, "published_at")
    return (
        tried.join(sql.broadcast(after), [*_LANE])
        .filter(is_later)
        .select(*_LANE, *_NAMED, "due_at")
    )


def _dues() -> "Column":
    """Return each `due_at` of a delivery: before the holds, and after each (from `since` on)."""
    from pyspark.sql import functions as sql

    def again(hold: "Column", place: "Column") -> "Column":
        next_hold = sql.get("holds", place + 1)
        return sql.struct(
            hold["until"].alias("since"),
            sql.least(sql.col("end"), next_hold["since"]).alias("due_at"),
        )

    first = sql.struct(
        sql.lit(None).cast("timestamp").alias("since"), sql.col("due_at").alias("due_at")
    )
    return sql.concat(sql.array(first), sql.transform("holds", again))
