"""Deliveries get the columns of their own messages, and another message's would be noticed."""

from collections.abc import Generator
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from delivery.database.connections import connection_parameters
from delivery.history.archive.fingerprint import CHECKSUM, fingerprint_of, fingerprint_of_batches
from delivery.history.postgres.message_columns import LostMessageError, MessageColumns, spans
from delivery.history.postgres.sent_statements import sent_statement
from delivery.history.postgres.source import Piece, read_batches
from delivery.history.postgres.successes import SENT, SUCCESS, RowSuccesses, success_checksum_sql
from delivery.history.postgres.unarchived_rows import EVER, NEVER
from delivery.history.postgres.window import open_snapshot
from delivery.history.schemas import DELIVERIES
from delivery.models import Delivery
from delivery.states import Status
from tests.support import factories


@given(st.lists(st.integers(1, 300), min_size=1))
def test_spans_have_all_messages_and_few_others(ids: list[int]) -> None:
    firsts, lasts = spans(pa.array(sorted(ids)))
    found = [id for first, last in zip(firsts, lasts, strict=True) for id in range(first, last + 1)]
    assert found == sorted(set(found))
    assert set(ids) <= set(found)
    assert set(firsts) | set(lasts) <= set(ids)
    assert all(later - earlier > 9 for earlier, later in zip(lasts, firsts[1:], strict=False))
    runs = [
        [id for id in sorted(set(ids)) if first <= id <= last]
        for first, last in zip(firsts, lasts, strict=True)
    ]
    assert all(later - earlier <= 9 for run in runs for earlier, later in pairwise(run))


@pytest.fixture
def deliveries() -> list[Delivery]:
    messages = [factories.message(b"x" * size) for size in (10, 2_000, 300)]
    for status in (Status.DELIVERED, Status.FAILED):
        for message in messages:
            subscription = factories.subscription(event_type=message.event_type)
            factories.delivery(status, message=message, subscription=subscription)
    return list(Delivery.objects.select_related("message").order_by("pk"))


def read(select: str, schema: pa.Schema) -> Generator[pa.RecordBatch]:
    conninfo = make_conninfo(**connection_parameters())
    with open_snapshot(conninfo) as seen:
        yield from read_batches(select, schema, conninfo=conninfo, snapshot=seen.name)


def read_of_another(select: str, schema: pa.Schema) -> Generator[pa.RecordBatch]:
    """Read the columns of messages, and give each message those of another."""
    for batch in read(select, schema):
        ids, *others = batch.columns
        yield pa.RecordBatch.from_arrays(
            [ids, *(column[::-1] for column in others)], schema=batch.schema
        )


def read_nothing(_select: str, _schema: pa.Schema) -> Generator[pa.RecordBatch]:
    yield from ()


def sent() -> str:
    piece = Piece(table=DELIVERIES.name, since=EVER, until=NEVER)
    return sent_statement(DELIVERIES, piece.select, SUCCESS, success_checksum_sql())


def joined(messages: MessageColumns) -> pa.RecordBatch:
    (batch,) = messages.joined(RowSuccesses().taken(read(sent(), SENT)))
    return batch


@pytest.mark.django_db(transaction=True)
def test_each_delivery_has_the_columns_of_its_message(deliveries: list[Delivery]) -> None:
    found = joined(MessageColumns(read))
    assert [
        {name: row[name] for name in ("id", "published_at", "body_bytes", "transaction_id")}
        for row in found.to_pylist()
    ] == [
        {
            "id": delivery.pk,
            "published_at": delivery.message.published_at,
            "body_bytes": len(delivery.message.body),
            "transaction_id": delivery.message.transaction_id,
        }
        for delivery in deliveries
    ]
    kept = fingerprint_of_batches(DELIVERIES.bare, [found])
    assert kept == fingerprint_of(found.column(CHECKSUM))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("deliveries")
def test_the_columns_of_another_message_change_the_fingerprint() -> None:
    found = joined(MessageColumns(read_of_another))
    kept = fingerprint_of_batches(DELIVERIES.bare, [found])
    assert kept != fingerprint_of(found.column(CHECKSUM))


@pytest.mark.django_db(transaction=True)
def test_a_delivery_without_its_message_fails(deliveries: list[Delivery]) -> None:
    with pytest.raises(LostMessageError, match=f"no message {deliveries[0].message_id}"):
        joined(MessageColumns(read_nothing))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("deliveries")
def test_a_delivery_that_arrives_with_another_message_fails() -> None:
    select, batches = sent(), []
    for batch in read(select, SENT):
        place = batch.schema.get_field_index("message_id")
        another = batch.column(place)[::-1]
        batches.append(batch.set_column(place, batch.schema.field(place), another))
    with pytest.raises(LostMessageError, match="other messages"):
        list(MessageColumns(read).joined(RowSuccesses().taken(batches)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_message_may_have_deliveries_in_several_batches(
    deliveries: list[Delivery], rows: int
) -> None:
    (batch,) = RowSuccesses().taken(read(sent(), SENT))
    parts = [batch.slice(0, 0), *(batch.slice(place, rows) for place in range(0, 6, rows))]
    found = list(MessageColumns(read).joined(parts))
    assert [len(part) for part in found] == [len(part) for part in parts[1:]]
    assert pa.concat_batches(found) == joined(MessageColumns(read))
    assert len(batch) == len(deliveries)
