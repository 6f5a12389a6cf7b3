"""Unarchived rows, in a snapshot of PostgreSQL: the rest of the whole history."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delivery.database.statements import statement
from delivery.history.postgres.source import (
    ALL_IDS,
    FORMAT,
    InturnReader,
    InturnSource,
    Piece,
    literal,
    read_batches,
)
from delivery.history.schemas import JOURNAL, Column, Table
from delivery.history.spark.frames import frame_of_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Before and after every occurring time.
EVER = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
# Up to this number of rows, a single process reads them faster than workers start.
FEW = 50_000

# The columns of a delivery without its attempts: those which never change, ...
FIXED = (
    Column("message_id", "bigint"),
    Column("subscription_id", "bigint"),
    Column("subscriber_id", "bigint"),
    Column("is_in_turn", "int", "1: of a subscriber who is sent one after the other"),
    Column("queue_group", "int", is_nullable=True),
    Column("replay_id", "bigint", is_nullable=True),
    Column("published_at", "timestamp"),
    Column("expires_at", "timestamp", "null also when it is in the archive", is_nullable=True),
    Column("is_volatile", "int", "1: of a VOLATILE message; 0 also when it is in the archive"),
    Column("transaction_id", "bigint", is_nullable=True),
    Column("seen_before", "bigint", is_nullable=True),
)
# ... those which grow, ...
GROWING = (
    Column("attempts", "int"),
    Column("attempts_before", "int"),
    Column("settled_before", "int", "null of older files of the archive", is_nullable=True),
    Column("is_resent", "int", "1: a person sent it again"),
)
# ... and the summary of the attempts.
TRIED = (
    Column("tried", "int", "attempts there are"),
    Column("numbers", "int", "different numbers of them"),
    Column("first_number", "int", is_nullable=True),
    Column("last_number", "int", is_nullable=True),
    Column("first_at", "timestamp", "when number 1 was begun", is_nullable=True),
    Column("successes", "int"),
    Column("success_number", "int", "of the first success", is_nullable=True),
    Column("lost", "int", "attempts whose sender died"),
)
UNARCHIVED = Table(
    "unarchived",
    key=("id",),
    at="settled_at",
    columns=(
        Column("id", "bigint"),
        Column("status", "string"),
        Column("settled_at", "timestamp", is_nullable=True),
        *FIXED,
        *GROWING,
        *TRIED,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unarchived(Piece):
    """The open deliveries, and each settlement at `since` or later."""

    @property
    def select(self) -> str:
        return statement("unarchived_deliveries") % {"since": literal(self.since)}


class UnarchivedSource(InturnSource):
    """Options: `conninfo`, `snapshot`, `since` (ISO 8601)."""

    @classmethod
    def name(cls) -> str:
        return f"{FORMAT}_unarchived"

    def schema(self) -> str:
        return ", ".join(f"{column.name} {column.type}" for column in UNARCHIVED.columns)

    def reader(self, schema: Any) -> InturnReader:
        since = datetime.fromisoformat(self.options["since"])
        return InturnReader(
            UNARCHIVED,
            [Unarchived(table=UNARCHIVED.name, since=since, until=NEVER)],
            conninfo=self.options["conninfo"],
            snapshot=self.options["snapshot"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Rows of a snapshot, new or settled since `since`.

    The frames must be read while the snapshot is held.
    """

    spark: "SparkSession" = field(repr=False)
    conninfo: str = field(repr=False)
    snapshot: str
    since: datetime

    def deliveries(self) -> "DataFrame":
        """Return UNARCHIVED of the open deliveries, and of each settlement since."""
        piece = Unarchived(table=UNARCHIVED.name, since=self.since, until=NEVER)
        return self._few(UNARCHIVED, piece) or self._load(UnarchivedSource)

    def journal(self) -> "DataFrame":
        """Return JOURNAL of the entries since."""
        piece = Piece(table=JOURNAL.name, since=self.since, until=NEVER)
        bounds = ",".join(map(str, ALL_IDS))
        return self._few(JOURNAL, piece) or self._load(
            InturnSource, table=JOURNAL.name, until=NEVER.isoformat(), bounds=bounds
        )

    def _few(self, table: Table, piece: Piece) -> "DataFrame | None":
        """Return all rows, read by this process; None if they are too many for a single process."""
        batches = []
        with closing(
            read_batches(piece.select, table.arrow, conninfo=self.conninfo, snapshot=self.snapshot)
        ) as rows:
            for batch in rows:
                batches.append(batch)
                if sum(batch.num_rows for batch in batches) > FEW:
                    return None
        few = pa.Table.from_batches(batches, table.arrow)
        return frame_of_arrow(self.spark, table.columns, few)

    def _load(self, source: type[InturnSource], **more: str) -> "DataFrame":
        self.spark.dataSource.register(source)
        options = {
            "conninfo": self.conninfo,
            "snapshot": self.snapshot,
            "since": self.since.isoformat(),
        }
        return self.spark.read.format(source.name()).options(**options, **more).load()


def names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]
