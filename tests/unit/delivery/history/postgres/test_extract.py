"""A piece of rows as it arrives: PostgreSQL's number of attempts is checked, and no row."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from delivery.history.archive.fingerprint import CHECKSUM
from delivery.history.postgres.extract import ArrivingRows, IncompleteError, rows_by_day
from delivery.history.schemas import ATTEMPTS, JOURNAL, Column, Table, arrow_rows


def batch(table: Table, *rows: tuple[int | None, int]) -> pa.RecordBatch:
    """Return rows that have only a key and a checksum."""
    between = [None] * (len(table.bare) - 1)
    columns = (*table.bare, Column(CHECKSUM, "bigint"))
    return arrow_rows(columns, [(key, *between, checksum) for key, checksum in rows])


def test_the_number_of_attempts_is_the_last_row() -> None:
    received = ArrivingRows(ATTEMPTS)
    batches = [batch(ATTEMPTS, (1, 11), (2, 22)), batch(ATTEMPTS, (3, 33), (None, 3))]
    keys = [rows.column("delivery_id").to_pylist() for rows in received.rows(batches)]
    assert keys == [[1, 2], [3]]
    assert (received.counted, received.sent.rows) == (3, 3)


def test_attempts_that_end_without_their_number_are_refused() -> None:
    with pytest.raises(IncompleteError, match="attempts ended without their number"):
        list(ArrivingRows(ATTEMPTS).rows([batch(ATTEMPTS, (1, 11))]))


def test_other_rows_have_no_number() -> None:
    received = ArrivingRows(JOURNAL)
    assert list(received.rows([])) == []
    assert [len(rows) for rows in received.rows([batch(JOURNAL, (1, 11))])] == [1]
    assert (received.counted, received.sent.rows) == (0, 1)


def test_rows_of_a_day_keep_their_order() -> None:
    hours = [(23, 1), (0, 2), (22, 1), (1, 2)]
    rows = pa.record_batch(
        {
            "id": range(4),
            "at": [datetime(2026, 3, day, hour, tzinfo=UTC) for hour, day in hours],
        }
    )
    found = [(day, part.column("id").to_pylist()) for day, part in rows_by_day(rows, "at")]
    assert found == [(date(2026, 3, 1), [0, 2]), (date(2026, 3, 2), [1, 3])]
