"""Successes in the rows of deliveries become attempts, in order among the others, each once."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from delivery.history.archive.fingerprint import CHECKSUM, fingerprint_of
from delivery.history.job import StepJob
from delivery.history.postgres.successes import SENT, LostSuccessError, RowSuccesses
from delivery.history.schemas import ATTEMPTS, DELIVERIES, arrow_schema
from delivery.history.steps.export import export_history
from delivery.models import Attempt, Delivery, LoggedAttempt
from delivery.states import OutcomeClass, Status
from tests.unit.delivery.history.exporting import AT_ONCE, rows, settled
from tests.unit.delivery.history.settlement_rows import resubmitted, try_once

AT = datetime(2026, 3, 1, tzinfo=UTC)
# Of each delivery, in the order of ids: how many attempts failed, and whether one more succeeded.
HISTORIES = st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=20)
CUTS = st.lists(st.integers(0, 80), max_size=6)


def batches(
    rows: Sequence[dict[str, Any]], cuts: Sequence[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for first, last in pairwise(places):
        yield pa.RecordBatch.from_pylist(rows[first:last], schema=schema)


def delivery(id: int, failures: int, *, is_delivered: bool) -> dict[str, Any]:
    number = failures + is_delivered
    success = {"started_at": AT, "duration_ms": id, "status_code": 204, "success_checksum": id}
    return {"id": id, "attempts": number, CHECKSUM: -id} | (success if is_delivered else {})


@given(HISTORIES, CUTS, CUTS)
def test_all_attempts_come_once_and_in_order(
    histories: list[tuple[int, bool]], cuts: list[int], other_cuts: list[int]
) -> None:
    deliveries = [
        delivery(id, failures, is_delivered=is_delivered)
        for id, (failures, is_delivered) in enumerate(histories, 1)
    ]
    failed = [
        {"delivery_id": id, "number": number, "outcome": "TIMEOUT"}
        for id, (failures, _) in enumerate(histories, 1)
        for number in range(1, failures + 1)
    ]
    successes = RowSuccesses()
    taken = list(successes.taken(batches(deliveries, cuts, SENT)))
    assert all(
        batch.schema.names == [*(column.name for column in DELIVERIES.selected), CHECKSUM]
        for batch in taken
    )
    assert [id for batch in taken for id in batch.column("id").to_pylist()] == [
        row["id"] for row in deliveries
    ]
    schema = arrow_schema(ATTEMPTS.bare)
    found = list(successes.among(batches(failed, other_cuts, schema)))
    assert all(batch.schema == schema for batch in found)
    delivered = [row for row in deliveries if "started_at" in row]
    expected = failed + [
        {"delivery_id": row["id"], "number": row["attempts"], "outcome": "SUCCESS"}
        for row in delivered
    ]
    assert [
        {name: row[name] for name in ("delivery_id", "number", "outcome")}
        for batch in found
        for row in batch.to_pylist()
    ] == sorted(expected, key=lambda row: (row["delivery_id"], row["number"]))
    checksums = [row["success_checksum"] for row in delivered]
    assert successes.sent == fingerprint_of(pa.array(checksums, pa.int64()))


@pytest.mark.parametrize("lost", ["started_at", "success_checksum"])
def test_a_success_that_does_not_arrive_whole_fails(lost: str) -> None:
    row = delivery(1, 0, is_delivered=True) | {lost: None}
    with pytest.raises(LostSuccessError):
        list(RowSuccesses().taken(batches([row], [], SENT)))


def move_success(delivery: Delivery, *, number: int) -> None:
    """Make the delivery's last attempt, with that number, a success in its own row."""
    LoggedAttempt.objects.filter(delivery=delivery, number=number).delete()
    Delivery.objects.filter(pk=delivery.pk).update(
        attempts=number, started_at=timezone.now(), duration_ms=7, status_code=204
    )


@pytest.mark.django_db(transaction=True)
def test_a_success_in_the_row_of_its_delivery_is_archived_like_other_attempts(job: StepJob) -> None:
    again, only, retried, logged = settled(Status.FAILED), settled(), settled(), settled()
    LoggedAttempt.objects.filter(delivery=retried).update(outcome=OutcomeClass.UNAVAILABLE)
    move_success(only, number=1)
    move_success(retried, number=2)
    export_history(job, lag=AT_ONCE)
    resubmitted(again)
    try_once(again, Status.DELIVERED)
    move_success(again, number=2)
    export_history(job, lag=AT_ONCE)
    stored = list(Attempt.objects.order_by("delivery_id", "number"))
    assert [(attempt.delivery_id, attempt.number, attempt.outcome) for attempt in stored] == [
        (again.pk, 1, "UNSENDABLE"),
        (again.pk, 2, "SUCCESS"),
        (only.pk, 1, "SUCCESS"),
        (retried.pk, 1, "UNAVAILABLE"),
        (retried.pk, 2, "SUCCESS"),
        (logged.pk, 1, "SUCCESS"),
    ]
    names = ("delivery_id", "number", "duration_ms", "outcome", "status_code", "error")
    for row, attempt in zip(rows(job, ATTEMPTS), stored, strict=True):
        assert row["started_at"].replace(tzinfo=UTC) == attempt.started_at
        assert [row[name] for name in names] == [getattr(attempt, name) for name in names]
        assert row["excerpt"] == bytes(attempt.excerpt)
