"""A range of messages is dropped at once if all its rows may go; otherwise they go row by row."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.database import queries
from delivery.lifecycle import transitions
from delivery.maintenance import retention
from delivery.models import (
    Callback,
    Delivery,
    EarlierSettlement,
    JournalEntry,
    Reply,
    RetentionRun,
    Status,
)
from tests.support import factories
from tests.unit.delivery.maintenance.ranged import (
    check_constraints,
    go_on_from,
    is_there,
    range_of,
)
from tests.unit.delivery.maintenance.retaining import (
    are_there,
    old,
    past,
    rows_in_all_tables,
    run_whole,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("archived_ranges", "row_by_row")]


class TestWholeRanges:
    def test_a_range_goes_at_once_with_all_that_belongs_to_it(self, row_by_row: list[int]) -> None:
        kept = factories.message()
        before = rows_in_all_tables()
        subscription = factories.subscription()
        with range_of() as whole:
            first = old(subscription=subscription, attempts=1, started_at=past(400))
            old(Status.FAILED, message=first.message, subscription=subscription, attempts=2)
            reopened = old(Status.FAILED, subscription=subscription)
            transitions.reopen_deliveries([reopened.pk], reason="")
            Delivery.objects.filter(pk=reopened.pk).update(
                status=Status.DELIVERED, settled_at=past(300)
            )
            unwanted = factories.message(published_at=past(31))
            edited = factories.message(published_at=past(300), edited_from=first.message)
            old(message=edited, subscription=subscription)
            Callback.objects.create(
                message=first.message,
                queue_group=0,
                url="https://a.example/",
                expires_at=past(300),
                answer=edited,
                answered_at=past(300),
            )
        Reply.objects.create(delivery_id=first.pk, message=first.message, reply=kept, digest=b"")
        assert EarlierSettlement.objects.exists()
        attempts = rows_in_all_tables()["delivery_attempt"] - before["delivery_attempt"]
        run = run_whole()
        assert not is_there(whole)
        assert row_by_row == []
        assert (run.messages, run.deliveries, run.attempts) == (4, 4, attempts)
        assert _of_messages(rows_in_all_tables()) == _of_messages(before)
        assert are_there(kept, first.message, unwanted) == [True, False, False]
        assert "removed 4 messages with 4 deliveries" in JournalEntry.objects.get().text

    def test_several_go_one_a_turn_with_the_progress_of_the_pass(self) -> None:
        with range_of() as first:
            old()
        with range_of() as second:
            old()
        with range_of():
            pass
        seen = []
        begun = retention.start_pass(actor="ann", now=timezone.now())
        while RetentionRun.objects.get(pk=begun.pk).state == "RUNNING":
            retention.advance_pass(timezone.now())
            check_constraints()
            seen.append(
                (is_there(first), is_there(second), RetentionRun.objects.get(pk=begun.pk).messages)
            )
        assert list(dict.fromkeys(seen)) == [(False, True, 1), (False, False, 2)]

    def test_messages_between_two_ranges_go_row_by_row(self, row_by_row: list[int]) -> None:
        with range_of() as before:
            old()
        end = before.until_id
        go_on_from(end + 10)
        row = old()
        check_constraints()
        queries.execute_statement("make_range", {"first": end + 20, "until": end + 120})
        go_on_from(end + 20)
        old()
        go_on_from(end + 121)
        check_constraints()
        assert run_whole().messages == 3
        assert row_by_row == [row.message_id]
        assert not is_there(before)

    def test_the_range_in_use_goes_row_by_row_and_stays(self, row_by_row: list[int]) -> None:
        with range_of(is_over=False) as newest:
            row = old()
        run_whole()
        assert row_by_row == [row.message_id]
        assert is_there(newest)


def _of_messages(rows: Counter[str]) -> dict[str, int]:
    tables = ("message", "delivery", "attempt", "callback", "earliersettlement", "reply")
    return {table: rows[f"delivery_{table}"] for table in tables}


class TestLater:
    def test_a_range_droppable_within_a_day_waits(self) -> None:
        with range_of() as whole:
            rows = [old(days=days) for days in (30.9, 30.1, 29.2)]
        assert run_whole().messages == 0
        assert are_there(*(row.message for row in rows)) == [True] * 3
        assert run_whole(timezone.now() + timedelta(days=0.85)).messages == 3
        assert not is_there(whole)

    def test_a_range_droppable_later_is_removed_row_by_row(self) -> None:
        with range_of() as whole:
            rows = [old(days=days) for days in (30.9, 30.1, 28.9)]
        assert run_whole().messages == 2
        assert are_there(*(row.message for row in rows)) == [False, False, True]
        assert is_there(whole)
