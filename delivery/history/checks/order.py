"""ORDER and, of what was never tried, GAPS: first attempts happen in the order of publication (README, promise 2). Pure transforms.

A was certainly accepted before B was published iff A's transaction had ended when B's looked (`A.transaction_id < B.seen_before`), or if both
are of one transaction, whose messages are published in the order of their ids. Then, of one subscriber whose
deliveries are sent one after the other (and of one replay, which is an order of its own), B's first attempt must not be before A's.

For each A there is a moment until which no later delivery may be tried, `due_at`: when it was tried itself, else the end of time. It is
explained, and not broken, that a later one overtook A

- while A's subscription was held (see `held`): then `due_at` is when it began to be held. When that ends, A is due again for
  all that is published from then on, until it is tried or held again; a run that was read before knows nothing of A,
- after A had expired, or was settled without an attempt and sent again by a person much later, or was of a VOLATILE message.

One pass over all deliveries, sorted by message, finds the subscribers of whom anything is doubted; one over theirs, sorted by
transaction, carries the last `due_at` so far, and which delivery that was of is looked for if something is broken. First attempts have the
times of their senders' clocks. What was published before transactions were recorded proves nothing, and is counted as such.
Whether a subscriber is SERIAL is known of when the delivery was archived: what was sent while that changed may be judged wrongly.
"""

from typing import TYPE_CHECKING

from delivery.history.checks.finding import GAPS, ORDER, finding, moment, with_broken, words
from delivery.history.postgres.unarchived import NEVER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LANE = ("subscriber_id", "replay")
_NAMED = ("message_id", "delivery_id", "transaction_id", "seen_before", "first_at")


def in_turn(known: "DataFrame", held: "DataFrame") -> "DataFrame":
    """Return the deliveries that an order is promised for: were tried, or wait to be.

    With `replay` (0: none), `holds` (those that concern it), `due_at`, and whether it `holds_others` back, for it is none of
    the explained.
    """
    from pyspark.sql import functions as sql

    is_promised = (sql.col("is_in_turn") == 1) & (
        sql.col("first_at").isNotNull() | (sql.col("status") == "PENDING")
    )
    end = sql.coalesce("first_at", "expires_at", sql.lit(NEVER))
    holds = sql.filter(
        sql.col("holds"), lambda hold: (hold["since"] < end) & (hold["until"] > sql.col("published_at"))
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
            ((sql.col("is_untried") == 0) & (sql.col("is_volatile") == 0)).alias("holds_others"),
        )
        .withColumn("due_at", sql.least("end", sql.get("holds", sql.lit(0))["since"]))
    )


def doubted(in_turn: "DataFrame") -> "DataFrame":
    """Add `is_doubted`: it was tried before another, of a message with a smaller id, was tried or given up.

    Whatever is accepted before another has the smaller id, too. So nothing is late that is not doubted, and in a sound history little is.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    before = Window.partitionBy(*_LANE).orderBy("message_id").rangeBetween(Window.unboundedPreceding, -1)
    stands = sql.when(sql.col("holds_others") & _is_proof(), sql.col("end"))
    is_doubted = (sql.max(stands).over(before) > sql.col("first_at")) & _is_proof()
    return in_turn.withColumn("is_doubted", sql.coalesce(is_doubted, sql.lit(False)))


def of_doubted(doubted: "DataFrame") -> "DataFrame":
    """Return all that is in turn with what is doubted: what `late` has to look at."""
    return doubted.join(doubted.filter("is_doubted").select(*_LANE).distinct(), [*_LANE], "left_semi")


def late(in_turn: "DataFrame") -> "DataFrame":
    """Return what was tried before something else was due, and `due_at`, when that was; of several the last."""
    rows = in_turn.filter(_is_proof())
    return _by_transaction(rows).unionByName(_since_held(rows)).dropDuplicates(["delivery_id"])


def overtaken(late: "DataFrame", in_turn: "DataFrame") -> "DataFrame":
    """Return what is late with what it overtook, as `broken`."""
    from pyspark.sql import functions as sql

    due = in_turn.filter("holds_others").select(
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
        words("which was first tried at ", moment("due_first_at"))
    )
    text = words(
        *("Delivery ", sql.col("delivery_id"), " was first tried at ", moment("first_at")),
        *(", before delivery ", other, ", published before it, ", waits, "."),
    )
    kind = sql.when(is_waiting, GAPS).otherwise(ORDER)
    return with_broken(found, finding(kind, text, when=sql.lit(True), other=other))


def order_counts() -> "Column":
    """Return how many first attempts were checked and are doubted, and how many are explained, as an aggregate of `doubted`."""
    from pyspark.sql import functions as sql

    return sql.struct(
        sql.count_if(_is_proof() & sql.col("first_at").isNotNull()).alias("checked"),
        sql.count_if("is_doubted").alias("doubted"),
        sql.count_if(sql.size("holds") > 0).alias("held"),
        sql.count_if(sql.col("was_untried") == 1).alias("sent_again"),
        sql.count_if(~_is_proof()).alias("not_provable"),
    )


def _is_proof() -> "Column":
    from pyspark.sql import functions as sql

    return sql.col("transaction_id").isNotNull() & sql.col("seen_before").isNotNull()


def _by_transaction(rows: "DataFrame") -> "DataFrame":
    """Return what was tried before one of an earlier transaction, or an earlier one of its own, was due."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    # Asks at what it had seen, before what became visible from there on; stands where it was written, in the order of its batch.
    asks = _event(place="seen_before", nth=sql.lit(0), stands=sql.lit(None))
    stands = sql.when(sql.col("holds_others"), sql.col("due_at"))
    written = _event(place="transaction_id", nth=sql.col("message_id"), stands=stands)
    events = rows.select(*_LANE, *_NAMED, sql.inline(sql.array(asks, written)))
    before = Window.partitionBy(*_LANE).orderBy("place", "nth").rowsBetween(Window.unboundedPreceding, -1)
    # Not of the same message: of that a subscriber may get several, in any order.
    batch = Window.partitionBy(*_LANE, "place").orderBy("nth").rangeBetween(Window.unboundedPreceding, -1)
    return (
        events.withColumn("earlier", sql.max("stands").over(before))
        .withColumn("in_batch", sql.max("stands").over(batch))
        .withColumn(
            "due_at", sql.when(sql.col("nth") == 0, sql.col("earlier")).otherwise(sql.col("in_batch"))
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
    """Return what was published after another was held no more, and tried before that was due."""
    from pyspark.sql import functions as sql

    after = (
        rows.filter("holds_others AND size(holds) > 0")
        .select(*_LANE, "transaction_id", sql.inline(_dues()))
        # When it was due without having been held is the other's to tell.
        .filter("since IS NOT NULL")
        .groupBy(*_LANE, "since")
        .agg(sql.max("due_at").alias("due_at"), sql.max("transaction_id").alias("last_transaction_id"))
        .filter("due_at > since")
    )
    is_later = (
        (sql.col("published_at") >= sql.col("since"))
        & (sql.col("first_at") < sql.col("due_at"))
        & (sql.col("last_transaction_id") < sql.col("seen_before"))
    )
    tried = rows.filter("first_at IS NOT NULL").select(*_LANE, *_NAMED, "published_at")
    return tried.join(sql.broadcast(after), [*_LANE]).filter(is_later).select(*_LANE, *_NAMED, "due_at")


def _dues() -> "Column":
    """Every moment at which it was due: before it was held, and after each time it was (from `since` on)."""
    from pyspark.sql import functions as sql

    def again(hold: "Column", place: "Column") -> "Column":
        next_hold = sql.get("holds", place + 1)
        return sql.struct(
            hold["until"].alias("since"), sql.least(sql.col("end"), next_hold["since"]).alias("due_at")
        )

    first = sql.struct(sql.lit(None).cast("timestamp").alias("since"), sql.col("due_at").alias("due_at"))
    return sql.concat(sql.array(first), sql.transform("holds", again))
