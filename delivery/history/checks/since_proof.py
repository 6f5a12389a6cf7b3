"""The part of the proven history read again by a verification since a proof. Pure transforms.

New are the deliveries settled since the proof, and the open ones. A row before the proof matters to
them in two ways, and then it was settled after a new delivery's message was published:

- It is of the same message. All rows of a message are judged together.
- It is of the same lane, and either may have overtaken the other. The new delivery was published
  before the proof then: a delivery published later was also first tried later.

Two rows before the proof have been compared.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from delivery.history.archive.proof import HistoryProof
from delivery.history.checks.known_deliveries import is_in_turn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_LANE = ("subscriber_id", "replay")


def touched_rows(archived: "DataFrame", unarchived: "DataFrame", *, until: datetime) -> "DataFrame":
    """Return the rows of new deliveries whose message was published before `until`.

    `archived` are the rows settled since then. `overtakes` means that the row's first attempt may
    be new: a resubmitted delivery was tried before, or is explained.
    """
    from pyspark.sql import functions as sql

    return (
        _touched(archived, is_in_turn())
        .unionByName(_touched(unarchived, sql.col("is_in_turn") == 1))
        .filter(sql.col("published_at") < until)
    )


def _touched(rows: "DataFrame", is_in_turn: "Column") -> "DataFrame":
    from pyspark.sql import functions as sql

    is_first = sql.coalesce(sql.col("settled_before"), sql.lit(0)) == 0
    return rows.select(
        "message_id",
        "published_at",
        "subscriber_id",
        sql.coalesce("replay_id", sql.lit(0)).alias("replay"),
        (is_in_turn & is_first).alias("overtakes"),
    )


def rows_read_again(proven: "DataFrame", touched: "DataFrame", *, until: datetime) -> "DataFrame":
    """Return the archived deliveries, of those settled before `until`, to read again.

    `is_judged` is false for rows needed only for the order of their lane.
    """
    from pyspark.sql import functions as sql

    messages = touched.select("message_id", sql.lit(True).alias("is_touched")).distinct()
    lanes = (
        touched.filter("overtakes").groupBy(*_LANE).agg(sql.min("published_at").alias("lane_since"))
    )
    # The clock of the database was set back after this publication.
    is_of_new = sql.col("published_at") >= until
    is_judged = sql.coalesce("is_touched", sql.lit(False)) | is_of_new
    return (
        proven.withColumn("replay", sql.coalesce("replay_id", sql.lit(0)))
        .join(messages, "message_id", "left")
        .join(lanes, [*_LANE], "left")
        .withColumn("is_judged", is_judged)
        .filter(
            sql.col("is_judged") | (is_in_turn() & (sql.col("settled_at") >= sql.col("lane_since")))
        )
        .drop("replay", "is_touched", "lane_since")
    )


def judged_deliveries(known: "DataFrame", read_again: "DataFrame") -> "DataFrame":
    """Return the known deliveries without those needed only for the order of their lane."""
    others = read_again.filter("NOT is_judged").select("message_id").distinct()
    return known.join(others, "message_id", "left_anti")


def never_archived() -> "Column":
    """Aggregate known deliveries to the DeliverySet of those without a row in the archive."""
    from pyspark.sql import functions as sql

    return _delivery_set(sql.col("in_archive") == 0)


def left_by(proof: HistoryProof) -> "Column":
    """Aggregate known deliveries to the set without a row in the archive at the proof."""
    from pyspark.sql import functions as sql

    until = sql.unix_micros(sql.lit(proof.until))
    return _delivery_set((sql.col("first_settled") >= until) & _was_visible(proof.snapshot))


def _delivery_set(condition: "Column") -> "Column":
    from pyspark.sql import functions as sql

    is_countable = (
        condition
        & (sql.col("settlements") > 0)
        # A replay creates deliveries of a message later than the message's transaction.
        & sql.col("replay_id").isNull()
        & sql.col("transaction_id").isNotNull()
    )
    return sql.struct(
        sql.count_if(is_countable).alias("deliveries"),
        sql.coalesce(
            sql.bit_xor(sql.when(is_countable, sql.xxhash64("id"))), sql.lit(0).cast("bigint")
        ).alias("checksum"),
    )


def _was_visible(snapshot: str) -> "Column":
    """Return whether a pg_snapshot shows the row's transaction."""
    from pyspark.sql import functions as sql

    oldest, end, running = snapshot.split(":")
    transaction = sql.col("transaction_id")
    is_ended = transaction < int(end)
    if running:
        is_ended &= ~transaction.isin(*map(int, running.split(",")))
    return (transaction < int(oldest)) | is_ended
