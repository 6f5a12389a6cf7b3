"""The source: the tables of the archive as they are in PostgreSQL now, read by Spark's workers."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from psycopg.conninfo import make_conninfo
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, LessThanOrEqual, Not

from delivery.database.connections import connection_parameters
from delivery.history.postgres import source
from delivery.history.postgres.source import FORMAT, InturnSource, Piece
from delivery.history.postgres.successes import SUCCESS
from delivery.history.postgres.window import open_snapshot
from delivery.history.schemas import BY_NAME, DELIVERIES, TABLES, arrow_schema
from delivery.models import JournalEntry, JournalKind, Message
from delivery.states import Status
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

SINCE, UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def conninfo() -> str:
    return make_conninfo(**connection_parameters())


@contextmanager
def reading(
    spark: SparkSession, conninfo: str, table: str, bounds: list[int]
) -> Iterator[DataFrame]:
    spark.dataSource.register(InturnSource)
    with open_snapshot(conninfo) as seen:
        options = {
            "conninfo": conninfo,
            "snapshot": seen.name,
            "table": table,
            "since": SINCE.isoformat(),
            "until": UNTIL.isoformat(),
            "bounds": ",".join(map(str, bounds)),
        }
        yield spark.read.format(FORMAT).options(**options).load()


@pytest.mark.slow
def test_parts_have_all_rows_once(spark: SparkSession, conninfo: str) -> None:
    ids = [factories.message().pk for _ in range(5)]
    with reading(spark, conninfo, "messages", [ids[0], ids[2], ids[4], ids[4] + 1]) as frame:
        assert frame.rdd.getNumPartitions() == 3
        assert [row["id"] for row in frame.orderBy("id").collect()] == ids


def test_all_partitions_read_one_snapshot(spark: SparkSession, conninfo: str) -> None:
    first = factories.message()
    with reading(spark, conninfo, "messages", [0, first.pk, 2**62]) as frame:
        factories.message()
        Message.objects.filter(pk=first.pk).update(content_type="changed/since")
        assert [(row["id"], row["content_type"]) for row in frame.collect()] == [
            (first.pk, first.content_type)
        ]


def test_conditions_are_pushed_down(spark: SparkSession, conninfo: str) -> None:
    ids = [factories.message(published_at=SINCE + timedelta(days=day)).pk for day in range(4)]
    with reading(spark, conninfo, "messages", [0, 2**62]) as frame:
        moment = SINCE + timedelta(days=2)
        found = frame.where(
            (frame.published_at >= moment) & (frame.id > ids[2]) & frame.content_type.like("%")
        )
        assert [row["id"] for row in found.collect()] == ids[3:]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (EqualTo(("kind",), "it's"), "\"kind\" = 'it''s'"),
        (GreaterThan(("id",), 5), '"id" > 5'),
        (LessThanOrEqual(("at",), SINCE), "\"at\" <= '2020-01-01 00:00:00+00:00'::timestamptz"),
        (IsNotNull(("kind",)), '"kind" IS NOT NULL'),
        (EqualTo(("a", "b"), 1), None),
        (EqualTo(("body",), b"x"), None),
        (In(("id",), (1, 2)), None),
        (Not(EqualTo(("id",), 5)), None),
    ],
)
def test_only_conditions_equal_in_postgresql_are_pushed_down(
    condition: Filter, text: str | None
) -> None:
    assert source.sql_condition(condition) == text


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_without_the_driver_of_arrow_the_rows_are_the_same(conninfo: str, table: str) -> None:
    for status in (Status.DELIVERED, Status.REJECTED):
        settled = factories.delivery(
            status, message=factories.message(bytes(range(256)), headers={"a": "☃"})
        )
        JournalEntry.objects.create(kind=JournalKind.CANCELLED, text="Zoë", delivery_id=settled.pk)
    more = SUCCESS if table == DELIVERIES.name else ()
    schema = arrow_schema((*BY_NAME[table].selected, *more))
    select = Piece(table=table, since=SINCE, until=UNTIL).select
    with open_snapshot(conninfo) as seen:
        by_adbc, by_copy = (
            _rows(select, schema, by(conninfo=conninfo, snapshot=seen.name))
            for by in (source.reader_by_adbc, source.reader_by_copy)
        )
    assert len(by_adbc) == 2
    assert by_adbc == by_copy


def _rows(
    select: str, schema: pa.Schema, reader: AbstractContextManager[source.Read]
) -> list[dict[str, Any]]:
    """Execute the statement twice by one connection, and return its rows once."""
    with reader as read:
        first, found = (
            [row for batch in read(select, schema) for row in batch.to_pylist()] for _ in range(2)
        )
    assert first == found
    return sorted(found, key=lambda row: next(iter(row.values())))
