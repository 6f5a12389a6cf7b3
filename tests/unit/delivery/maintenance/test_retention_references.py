"""Old rows that retention keeps because others refer to them, and rows that go together."""

from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.statements import statement
from delivery.maintenance import retention
from delivery.models import (
    Archived,
    Callback,
    Delivery,
    FailureNotice,
    IdempotencyKey,
    Lane,
    LaneState,
    Message,
    Resubmission,
    Status,
)
from delivery.support import bulk_jobs
from subscriptions.models import DedupMode, Kind
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import are_there, is_there, old, past, run_whole

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _archived() -> None:
    Archived.objects.create(pk=1, until=past(0.5))


@pytest.fixture(params=[1, 500])
def _batch_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test batches of one and of many rows: rows that belong together go in both cases."""
    monkeypatch.setattr(retention, "BATCH", request.param)


class TestReferences:
    def test_an_unreported_failure_keeps_its_message(self) -> None:
        row = old(Status.REJECTED)
        FailureNotice.objects.create(delivery_id=row.pk, number=1)
        run_whole()
        assert is_there(row)
        FailureNotice.objects.all().delete()
        run_whole()
        assert not is_there(row)

    def test_the_first_answer_to_an_idempotency_key(self) -> None:
        row = old()
        key = IdempotencyKey.objects.create(
            publisher=row.message.publisher or factories.publisher(),
            key="k",
            digest=b"",
            message=row.message,
        )
        run_whole()
        assert is_there(row)
        IdempotencyKey.objects.filter(pk=key.pk).update(created_at=past(1.1))
        run_whole()
        assert not is_there(row)
        assert not IdempotencyKey.objects.exists()

    @pytest.mark.parametrize(
        ("mode", "spared"), [(DedupMode.KEY, True), (DedupMode.PATH, True), (DedupMode.NONE, False)]
    )
    def test_the_reference_of_a_dedup_window_keeps_its_message(
        self, mode: DedupMode, spared: bool
    ) -> None:
        path = {"dedup_path": "$$->'Body'->>'id'"} if mode == DedupMode.PATH else {}
        subscription = factories.subscription(
            dedup_mode=mode, dedup_window_seconds=31 * 86_400, **path
        )
        within, beyond = (old(days=days, subscription=subscription) for days in (30.9, 31.1))
        run_whole()
        assert [is_there(row) for row in (within, beyond)] == [spared, False]

    def test_a_stopped_lanes_head_keeps_its_message(self) -> None:
        row = old(Status.CANCELLED)
        lanes = Lane.objects.filter(pk=row.lane_id or 0)
        lanes.update(state=LaneState.SUSPENDED, delivery_id=row.pk)
        run_whole()
        assert is_there(row)
        lanes.update(state=LaneState.IDLE)
        run_whole()
        assert not is_there(row)

    def test_stopped_lanes_are_read_once_for_all_deliveries(self) -> None:
        rows = [old() for _ in range(30)]
        for number in range(10):
            lane = factories.subscriber().lane
            Lane.objects.filter(pk=lane.pk).update(
                state=LaneState.BLOCKED, delivery_id=10_000 + number
            )
        asked = {
            "messages": [row.message_id for row in rows],
            "deliveries": [row.pk for row in rows],
            "until": orjson.dumps({"DELIVERED": past(30)}).decode(),
            "unmatched_until": None,
            "archived_until": past(0.5),
            "resubmittable": [],
        }
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE delivery_lane, delivery_delivery, delivery_message")
            cursor.execute(f"EXPLAIN (ANALYZE, COSTS OFF) {statement('remove_messages')}", asked)
            plan = [row[0] for row in cursor.fetchall()]
        (scan,) = [line for line in plan if " on delivery_lane" in line]
        assert "loops=1)" in scan

    def test_a_lane_keeps_the_run_it_recorded(self) -> None:
        """A lane that a later delivery has blocked for weeks does not read settled ones of its run
        again.
        """
        row = old()
        lanes = Lane.objects.filter(pk=row.lane_id or 0)
        lanes.update(run_ids=[row.pk], run_attempts=[0])
        run_whole()
        assert not is_there(row)
        assert lanes.get().run_ids == [row.pk]

    @pytest.mark.parametrize(
        ("status", "spared"), [(Status.FAILED, True), (Status.DELIVERED, False)]
    )
    def test_a_running_resubmission_keeps_its_messages(self, status: Status, spared: bool) -> None:
        rows = [old(status) for _ in range(2)]
        job = bulk_jobs.start_job({"status": ["FAILED"]}, rate=1, actor="ann")
        Resubmission.objects.filter(pk=job.pk).update(position=rows[0].pk)
        run_whole()
        assert [is_there(row) for row in rows] == [False, spared]
        bulk_jobs.cancel_job(job, actor="ann", now=timezone.now())
        run_whole()
        assert not is_there(rows[1])


@pytest.mark.usefixtures("_batch_size")
class TestEditedCopies:
    def copies(self, *days: float) -> list[Message]:
        """Create a message, its edited copy, and a copy of that; settled so many days ago."""
        made: list[Message] = []
        for number in days:
            original = made[-1] if made else None
            message = factories.message(published_at=past(number), edited_from=original)
            old(message=message, days=number)
            made.append(message)
        return made

    def test_an_original_is_removed_with_its_copies(self) -> None:
        made = self.copies(60, 50, 40)
        assert run_whole().messages == 3
        assert are_there(*made) == [False] * 3

    def test_an_original_stays_while_a_copy_has_to(self) -> None:
        made = self.copies(60, 50, 20)
        assert run_whole().messages == 0
        assert are_there(*made) == [True] * 3

    def test_a_copy_goes_before_its_original(self) -> None:
        original, copy = self.copies(60, 50)
        Delivery.objects.filter(message=original).update(status=Status.FAILED)
        run_whole()
        assert are_there(original, copy) == [True, False]


@pytest.mark.usefixtures("_batch_size")
class TestCallbacks:
    def question(self, *, days: float = 60, expires: float = 56, **fields: Any) -> Callback:
        """Create a QUEUE message that was delivered, with its callback."""
        event_type = factories.event_type(kind=Kind.QUEUE)
        message = factories.message(event_type=event_type, published_at=past(days))
        old(
            message=message,
            subscription=factories.subscription(event_type=event_type),
            queue_group=0,
        )
        return Callback.objects.create(
            message=message,
            queue_group=0,
            url="https://a.example/",
            expires_at=past(expires),
            **fields,
        )

    def answered(
        self, callback: Callback, *, days: float = 59, status: Status = Status.DELIVERED
    ) -> Delivery:
        answer = factories.message(published_at=past(days))
        row = old(status, message=answer, callback=callback)
        Callback.objects.filter(pk=callback.pk).update(answer=answer, answered_at=past(days))
        return row

    def test_an_open_callback_keeps_its_message(self) -> None:
        callback = self.question(expires=-0.1)
        run_whole()
        assert are_there(callback.message) == [True]

    def test_an_expired_callback_is_removed_with_its_message(self) -> None:
        callback = self.question()
        run_whole()
        assert are_there(callback.message) == [False]
        assert not Callback.objects.exists()

    def test_a_repeatable_answer_keeps_both_messages(self) -> None:
        callback = self.question(expires=-0.1)
        answer = self.answered(callback)
        run_whole()
        assert are_there(callback.message, answer.message) == [True, True]

    def test_question_and_answer_go_together(self) -> None:
        callback = self.question()
        answer = self.answered(callback)
        assert run_whole().messages == 2
        assert are_there(callback.message, answer.message) == [False, False]

    def test_the_answers_of_all_groups_go_with_the_question(self) -> None:
        first = self.question()
        second = Callback.objects.create(
            message=first.message, queue_group=1, url="https://a.example/", expires_at=past(56)
        )
        answers = [
            self.answered(callback, days=days).message
            for callback, days in ((first, 59), (second, 40))
        ]
        assert run_whole().messages == 3
        assert are_there(first.message, *answers) == [False] * 3

    @pytest.mark.parametrize("status", [Status.PENDING, Status.FAILED])
    def test_a_question_stays_while_its_answer_has_to(self, status: Status) -> None:
        callback = self.question()
        answer = self.answered(callback, status=status)
        run_whole()
        assert are_there(callback.message, answer.message) == [True, True]

    def test_an_answer_stays_while_its_question_has_to(self) -> None:
        callback = self.question()
        answer = self.answered(callback)
        Delivery.objects.filter(message=callback.message).update(status=Status.FAILED)
        run_whole()
        assert are_there(callback.message, answer.message) == [True, True]

    def test_a_chain_and_the_copies_of_its_answers_go_together_or_not_at_all(self) -> None:
        first = self.question()
        answer = self.answered(first)
        second = Callback.objects.create(
            message=answer.message,
            queue_group=0,
            url="https://b.example/",
            hop=2,
            expires_at=past(50),
        )
        last = self.answered(second, days=55)
        copy = factories.message(published_at=past(31), edited_from=last.message)
        copied = old(message=copy, callback=second)
        chain = (first.message, answer.message, last.message, copy)
        Delivery.objects.filter(pk=copied.pk).update(settled_at=timezone.now() - timedelta(days=29))
        assert run_whole().messages == 0
        assert are_there(*chain) == [True] * 4
        Delivery.objects.filter(pk=copied.pk).update(settled_at=past(30.5))
        assert run_whole().messages == 4
        assert are_there(*chain) == [False] * 4
