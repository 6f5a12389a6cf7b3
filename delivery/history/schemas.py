"""The archive's tables, as data: names, types and meaning of columns, for Spark, Arrow and people.

Days are UTC. Times are microseconds in UTC. A column added later is null in the files of older
days.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# The folder of a day is `day=2026-11-22`, Hive's convention, which every Parquet reader supports.
DAY = "day"

_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


class SchemaError(TypeError):
    """A frame lacks a column of the schema; the message names the first difference."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `type` is Spark's name, `meaning` is shown next to reports.

    With `is_called`, the value follows from the row's subscription (see `names`); with
    `is_of_message`, from a delivery's message (see `message_columns`). With `may_change`,
    PostgreSQL's value may change after an export: a changeable name, a removable message or lane,
    or the output of a script, which is replaced if an untried delivery is sent again.
    """

    name: str
    type: str
    meaning: str = ""
    is_nullable: bool = False
    is_called: bool = False
    is_of_message: bool = False
    may_change: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; rows are unique by `key`, and sorted by it within a file.

    `at` is the time by which rows are exported and assigned to days.
    """

    name: str
    key: tuple[str, ...]
    at: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def bare(self) -> tuple[Column, ...]:
        """The columns not derived from the row's subscription."""
        return tuple(column for column in self.columns if not column.is_called)

    @property
    def certain(self) -> tuple[Column, ...]:
        """The columns of `bare` which never change once a row is archived."""
        return tuple(column for column in self.bare if not column.may_change)

    @property
    def selected(self) -> tuple[Column, ...]:
        """The columns of the selecting statement."""
        return tuple(column for column in self.bare if not column.is_of_message)

    @property
    def called(self) -> list[str]:
        """The names of the other columns."""
        return [column.name for column in self.columns if column.is_called]

    @property
    def spark(self) -> "StructType":
        return spark_schema(self.columns)

    @property
    def arrow(self) -> pa.Schema:
        return arrow_schema(self.columns)

    def checked(self, frame: "DataFrame") -> "DataFrame":
        """Return the frame with exactly these columns in this order.

        Raises SchemaError if a column is missing or has another type.
        """
        types = dict(frame.dtypes)
        for column in self.columns:
            if types.get(column.name) != column.type:
                actual = types.get(column.name, "not there")
                raise SchemaError(
                    f"{self.name}.{column.name} should be {column.type}, and is {actual}."
                )
        return frame.select(*self.names)


def spark_schema(columns: Sequence[Column]) -> "StructType":
    """Return Spark's schema with all columns nullable, as files give them back."""
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(", ".join(f"{column.name} {column.type}" for column in columns))
    assert isinstance(schema, StructType)
    return schema


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, _ARROW[column.type]) for column in columns])


def arrow_rows(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return rows, each with a value for every column, as an Arrow batch."""
    schema = arrow_schema(columns)
    values = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(values, schema=schema)


MESSAGES = Table(
    "messages",
    key=("id",),
    at="published_at",
    columns=(
        Column("id", "bigint", "the number in msg_…"),
        Column("published_at", "timestamp"),
        Column("event_type", "string", may_change=True),
        Column("publisher", "string", "null: Inturn itself", is_nullable=True, may_change=True),
        Column("headers", "string", "JSON: text by lower-case name"),
        Column("content_type", "string"),
        Column("body", "binary", "the exact bytes"),
        Column(
            "destination",
            "string",
            "the recipient of a delivered message; empty: all matching subscriptions",
        ),
        Column(
            "edited_from",
            "bigint",
            "the message that a person edited",
            is_nullable=True,
            may_change=True,
        ),
        Column("owed", "int", "with how many deliveries it was accepted", is_nullable=True),
        Column(
            "transaction_id", "bigint", "PostgreSQL's xid8 of its publication", is_nullable=True
        ),
        Column(
            "seen_before",
            "bigint",
            "every transaction before this one had ended by then",
            is_nullable=True,
        ),
    ),
)

DELIVERIES = Table(
    "deliveries",
    # A resubmitted delivery is here once for each time it was settled; the newest counts.
    key=("id", "settled_at"),
    at="settled_at",
    columns=(
        Column("id", "bigint"),
        Column("settled_at", "timestamp"),
        Column("status", "string", "as it was settled then"),
        Column("message_id", "bigint"),
        Column("published_at", "timestamp", "of its message", is_of_message=True),
        Column("event_type", "string", is_called=True),
        Column("kind", "string", "TOPIC, QUEUE or SYNC", is_called=True),
        Column("subscriber", "string", is_called=True),
        Column("subscriber_id", "bigint", is_called=True),
        Column("subscription", "string", "its name", is_called=True),
        Column("subscription_id", "bigint"),
        Column("mode", "string", "PUSH or PULL", is_called=True),
        Column("processing", "string", "SERIAL or CONCURRENT, of the subscriber", is_called=True),
        Column("endpoint", "string", "as it was at the export; empty: a mailbox", is_called=True),
        Column("queue_group", "int", "of a QUEUE message", is_nullable=True),
        Column("callback_id", "bigint", "it went to a callback's URL", is_nullable=True),
        Column(
            "replay_id", "bigint", "its origin, if not its message's publication", is_nullable=True
        ),
        Column("attempts", "int"),
        Column("attempts_before", "int", "of them before a person sent it again"),
        Column(
            "settled_before", "int", "how often it had been settled before, and a person ended that"
        ),
        Column("redelivery", "string"),
        Column("reason", "string"),
        Column("receive_count", "int", "how often it was fetched from a mailbox"),
        Column("body_bytes", "bigint", is_of_message=True),
        Column(
            "output_sha256",
            "string",
            "in hex, of the body that its script made; null: the message's own was sent",
            is_nullable=True,
            may_change=True,
        ),
        Column("transaction_id", "bigint", "of its message", is_nullable=True, is_of_message=True),
        Column("seen_before", "bigint", "of its message", is_nullable=True, is_of_message=True),
    ),
)

ATTEMPTS = Table(
    "attempts",
    key=("delivery_id", "number"),
    # The time of the delivery: both are in the same day.
    at="settled_at",
    columns=(
        Column("delivery_id", "bigint"),
        Column("number", "int", "from 1"),
        Column("settled_at", "timestamp", "of its delivery, by the settlement that it belongs to"),
        Column("message_id", "bigint"),
        Column("subscription_id", "bigint"),
        Column("subscriber", "string", is_called=True),
        Column("event_type", "string", is_called=True),
        Column("started_at", "timestamp"),
        Column("duration_ms", "int", "", is_nullable=True),
        Column("outcome", "string"),
        Column("status_code", "int", "of the answer", is_nullable=True),
        Column("error", "string"),
        Column("excerpt", "binary", "the first 4 KiB of the answer of a failed one"),
    ),
)

JOURNAL = Table(
    "journal",
    key=("id",),
    at="at",
    columns=(
        Column("id", "bigint"),
        Column("at", "timestamp"),
        Column("kind", "string"),
        Column("text", "string"),
        Column("actor", "string", "empty: Inturn itself"),
        Column("message_id", "bigint", "", is_nullable=True),
        Column("delivery_id", "bigint", "", is_nullable=True),
        Column("subscription_id", "bigint", "", is_nullable=True, may_change=True),
        Column("lane_id", "bigint", "", is_nullable=True),
        Column("subscriber_id", "bigint", "whose lane it is", is_nullable=True, may_change=True),
    ),
)

# The columns derived from a subscription, as in the archive, with `subscription_id`.
CALLED = (
    Column("subscription_id", "bigint"),
    Column("subscriber_id", "bigint"),
    *(
        Column(name, "string")
        for name in (
            "subscriber",
            "processing",
            "subscription",
            "mode",
            "event_type",
            "kind",
            "endpoint",
        )
    ),
)

TABLES = (MESSAGES, DELIVERIES, ATTEMPTS, JOURNAL)
BY_NAME = {table.name: table for table in TABLES}
