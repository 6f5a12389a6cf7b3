"""One row that has to stay keeps its range of messages; the others go row by row."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import (
    Archived,
    Callback,
    Delivery,
    EarlierSettlement,
    FailureNotice,
    IdempotencyKey,
    Lane,
    LaneState,
    Message,
    Replay,
    ReplayItem,
    Status,
)
from delivery.support import bulk_jobs
from subscriptions.models import DedupMode
from tests.support import factories
from tests.unit.delivery.maintenance.ranged import check_constraints, is_there, range_of
from tests.unit.delivery.maintenance.retaining import are_there, old, past, run_whole

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("archived_ranges", "row_by_row")]

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
            kept_row = old()
        with range_of():
            other = old()
        if in_range == "original":
            Message.objects.filter(pk=other.message_id).update(edited_from=kept_row.message)
        else:
            question, answer = (kept_row, other) if in_range == "question" else (other, kept_row)
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

    def test_what_a_pass_has_left_is_looked_up_again_when_it_can_be_removed(
        self, gone_through: list[int]
    ) -> None:
        with range_of() as kept:
            old()
            failed, in_doubt = old(Status.FAILED, days=85), old(Status.IN_DOUBT)
            old()
        with range_of():
            old(days=1)

        def removed_after(days: float) -> tuple[int, bool]:
            gone_through.clear()
            run = run_whole(timezone.now() + timedelta(days=days))
            return run.messages, any(kept.first_id <= id < kept.until_id for id in gone_through)

        assert removed_after(0) == (2, True)
        assert [removed_after(days) for days in (0.1, 0.2)] == [(0, False)] * 2
        Archived.objects.update(until=past(-100))
        assert removed_after(4.9) == (0, False)
        assert removed_after(5.1) == (1, True)
        assert removed_after(5.2) == (0, False)
        assert are_there(failed.message, in_doubt.message) == [False, True]
        # A person decides: the days of its new status begin.
        Delivery.objects.filter(pk=in_doubt.pk).update(status=Status.DELIVERED, settled_at=past(0))
        assert removed_after(20) == (0, False)
        assert removed_after(36) == (2, False)
        assert not is_there(kept)

    def test_unarchived_messages_are_kept(self) -> None:
        with range_of() as kept:
            old()
        Archived.objects.update(until=past(401))
        assert run_whole().messages == 0
        assert is_there(kept)
