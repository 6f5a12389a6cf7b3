"""A range of messages is dropped at once if all its rows may go; otherwise they go row by row."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.database import queries
from delivery.lifecycle import transitions
from delivery.maintenance import retention
from delivery.models import (
    Archived,
    Callback,
    Delivery,
    EarlierSettlement,
    FailureNotice,
    IdempotencyKey,
    JournalEntry,
    Lane,
    LaneState,
    Message,
    MessageRange,
    Replay,
    ReplayItem,
    RetentionRun,
    Status,
)
from delivery.support import bulk_jobs
from subscriptions.models import DedupMode
from tests.support import factories
from tests.unit.delivery.maintenance.ranged import (
    check_constraints,
    go_on_from,
    ids_put_back,
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

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _archived(db: None) -> Iterator[None]:
    Archived.objects.create(pk=1, until=past(0.5))
    with ids_put_back():
        go_on_from(MessageRange.objects.earliest("first_id").first_id + 1)
        yield


@pytest.fixture(autouse=True)
def row_by_row(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids up to which a pass has gone row by row, wherever it removed rows."""
    went: list[int] = []
    remove = retention._remove_rows

    def noted(run: RetentionRun, *args: object, **kwargs: object) -> None:
        before = run.messages
        remove(run, *args, **kwargs)  # type: ignore[arg-type]
        if run.messages > before:
            went.append(run.position)

    monkeypatch.setattr(retention, "_remove_rows", noted)
    return went


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
    tables = ("message", "delivery", "attempt", "callback", "earliersettlement")
    return {table: rows[f"delivery_{table}"] for table in tables}


Keep = Callable[[Delivery], object]


def young(_: Delivery) -> None:
    old(days=10)


def open_delivery(row: Delivery) -> None:
    factories.delivery(Status.PENDING, message=row.message, subscription=row.subscription)


def in_doubt(_: Delivery) -> None:
    old(Status.IN_DOUBT)


def failed_that_stays_longer(_: Delivery) -> None:
    old(Status.FAILED, days=60)


def unwanted_and_young(_: Delivery) -> None:
    factories.message(published_at=past(20))


def key(row: Delivery) -> None:
    IdempotencyKey.objects.create(
        publisher=row.message.publisher or factories.publisher(),
        key="k",
        digest=b"",
        message=row.message,
    )


def open_callback(row: Delivery) -> None:
    Callback.objects.create(
        message=row.message, queue_group=0, url="https://a.example/", expires_at=past(-1)
    )


def running_replay(row: Delivery) -> None:
    replay = Replay.objects.create(
        subscription=row.subscription, since=past(500), until=past(1), rate=1, state="RUNNING"
    )
    ReplayItem.objects.create(replay=replay, message_id=row.message_id)


def unarchived_settlement(row: Delivery) -> None:
    EarlierSettlement.objects.create(
        delivery_id=row.pk,
        settled_at=past(0.1),
        attempts=1,
        is_amended=False,
        ended_by="1",
        ended_at=past(0.1),
    )


def unreported_failure(row: Delivery) -> None:
    FailureNotice.objects.create(delivery_id=row.pk, number=1)


def stopped_lane(row: Delivery) -> None:
    Lane.objects.filter(pk=row.lane_id or 0).update(state=LaneState.SUSPENDED, delivery_id=row.pk)


def window_of_duplicates(row: Delivery) -> None:
    row.subscription.dedup_mode = DedupMode.KEY
    row.subscription.dedup_window_seconds = 500 * 86_400
    row.subscription.save()


def running_resubmission(_: Delivery) -> None:
    old(Status.FAILED)
    bulk_jobs.start_job({"status": ["FAILED"]}, rate=1, actor="ann")


class TestKept:
    @pytest.mark.parametrize(
        "keep",
        [
            young,
            open_delivery,
            in_doubt,
            failed_that_stays_longer,
            unwanted_and_young,
            key,
            open_callback,
            running_replay,
            unarchived_settlement,
            unreported_failure,
            stopped_lane,
            window_of_duplicates,
            running_resubmission,
        ],
    )
    def test_one_kept_message_keeps_its_range_and_others_are_removed(
        self, keep: Keep, row_by_row: list[int]
    ) -> None:
        with range_of() as kept:
            other, row = old(), old()
            keep(row)
            count = Message.objects.filter(pk__gte=kept.first_id).count()
        with range_of() as next_one:
            old()
        with range_of():
            pass
        run = run_whole()
        assert run.messages == count
        assert are_there(other.message) == [False]
        assert Message.objects.filter(pk__gte=kept.first_id, pk__lt=kept.until_id).count() == 1
        assert (is_there(kept), is_there(next_one)) == (True, False)
        assert len(row_by_row) == 1

    @pytest.mark.parametrize("in_range", ["original", "question", "answer"])
    def test_messages_tied_to_another_range_are_removed_row_by_row(
        self, in_range: str, row_by_row: list[int]
    ) -> None:
        with range_of() as first:
            one = old()
        with range_of():
            other = old()
        if in_range == "original":
            Message.objects.filter(pk=other.message_id).update(edited_from=one.message)
        else:
            question, answer = (one, other) if in_range == "question" else (other, one)
            Callback.objects.create(
                message=question.message,
                queue_group=0,
                url="https://a.example/",
                expires_at=past(300),
                answer=answer.message,
                answered_at=past(300),
            )
        check_constraints()
        assert run_whole().messages == 2
        assert not Callback.objects.exists()
        assert len(row_by_row) == 1
        assert not is_there(first)

    def test_unarchived_messages_are_kept(self) -> None:
        with range_of() as kept:
            old()
        Archived.objects.update(until=past(401))
        assert run_whole().messages == 0
        assert is_there(kept)


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
