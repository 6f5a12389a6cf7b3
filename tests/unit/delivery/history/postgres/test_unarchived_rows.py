"""Unarchived rows: the same whether this process reads a few, or workers read many."""

from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from pyspark.sql import SparkSession

from delivery.database.connections import connection_parameters
from delivery.history.postgres import unarchived_rows
from delivery.history.postgres.unarchived_rows import EVER, Rest
from delivery.history.postgres.window import open_snapshot
from delivery.models import JournalEntry, JournalKind
from delivery.states import Status
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def read(spark: SparkSession) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    conninfo = make_conninfo(**connection_parameters())
    with open_snapshot(conninfo) as seen:
        rest = Rest(spark=spark, conninfo=conninfo, snapshot=seen.name, since=EVER)
        deliveries, journal = (
            frame.orderBy("id").collect() for frame in (rest.deliveries(), rest.journal())
        )
    return [row.asDict() for row in deliveries], [row.asDict() for row in journal]


def test_few_and_many_are_read_alike(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    delivered, pending = factories.delivery(Status.DELIVERED), factories.delivery(Status.PENDING)
    factories.attempt(delivered, number=2)
    JournalEntry.objects.create(kind=JournalKind.CANCELLED, text="Zoë", delivery_id=pending.pk)
    few = read(spark)
    monkeypatch.setattr(unarchived_rows, "FEW", 0)
    assert read(spark) == few
    deliveries, journal = few
    assert [(row["id"], row["status"], row["tried"]) for row in deliveries] == [
        (delivered.pk, "DELIVERED", 2),
        (pending.pk, "PENDING", 0),
    ]
    assert [row["text"] for row in journal] == ["Zoë"]


def test_an_empty_database_gives_no_rows(spark: SparkSession) -> None:
    assert read(spark) == ([], [])
