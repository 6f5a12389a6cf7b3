"""The deliveries of a replay: each message once, in order, at its rate, archived ones too."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from delivery.models import (
    ArchiveFile,
    Delivery,
    JournalEntry,
    LaneKind,
    Message,
    ReplayItem,
    ReplayState,
    ScriptOutput,
    Status,
)
from delivery.support.replays import deliver
from delivery.support.replays.replays import cancel_replay, start_replay
from subscriptions.models import Kind, Mode, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.history.archived import seconds
from tests.unit.delivery.support.replays.ready_replay import (
    archived,
    finish,
    made,
    ready,
    running,
    step,
    stored,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def archive(settings: Settings, tmp_path: Path) -> Path:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(tmp_path))
    return tmp_path


@pytest.fixture
def subscription() -> Subscription:
    return factories.subscription()


def ids(messages: list[Message]) -> list[int]:
    return [message.pk for message in messages]


class TestReplayedDelivery:
    def test_has_no_output_of_a_script_before_it_is_sent_whatever_the_original_had(
        self, subscription: Subscription
    ) -> None:
        (message,) = stored(subscription.event_type)
        original = factories.delivery(Status.DELIVERED, message=message, subscription=subscription)
        ScriptOutput.objects.create(pk=original.pk, script_version=1, body=b"made")
        (row,) = made(finish(running(subscription, [message.pk])))
        assert list(ScriptOutput.objects.values_list("pk", flat=True)) == [original.pk]
        assert row.pk != original.pk

    def test_is_one_delivery_for_each_message_in_order_of_publication(
        self, subscription: Subscription
    ) -> None:
        messages = stored(subscription.event_type, 5)
        replay = finish(running(subscription, ids(messages)[::-1]))
        rows = made(replay)
        assert [row.message_id for row in rows] == ids(messages)
        assert {(row.status, row.lane_id, row.subscription_id, row.expires_at) for row in rows} == {
            (Status.PENDING, subscription.subscriber.lane.pk, subscription.pk, None)
        }
        assert (replay.state, replay.done, replay.made, replay.ended_at is None) == (
            "DONE",
            5,
            5,
            False,
        )
        kept = ReplayItem.objects.order_by("message_id").values_list("delivery_id", flat=True)
        assert list(kept) == [row.pk for row in rows]

    def test_leaves_earlier_deliveries_unchanged(self, subscription: Subscription) -> None:
        (message,) = stored(subscription.event_type)
        before = factories.delivery(Status.DELIVERED, subscription=subscription, message=message)
        finish(running(subscription, [message.pk]))
        assert Delivery.objects.get(pk=before.pk).status == Status.DELIVERED
        assert Delivery.objects.filter(message=message).count() == 2

    def test_is_held_while_the_subscription_is_inactive(self, subscription: Subscription) -> None:
        Subscription.objects.update(status=SubscriptionStatus.INACTIVE)
        assert len(made(finish(running(subscription, ids(stored(subscription.event_type)))))) == 1

    def test_in_a_mailbox_lasts_the_mailboxs_days(self) -> None:
        pulled = factories.subscription(mode=Mode.PULL)
        (row,) = made(finish(running(pulled, ids(stored(pulled.event_type)))))
        assert (row.lane, row.status) == (None, Status.PENDING)
        assert row.expires_at is not None
        assert row.expires_at > timezone.now() + timedelta(days=3)

    def test_of_a_queue_is_a_group_of_its_own(self) -> None:
        subscription = factories.subscription(event_type=factories.event_type(kind=Kind.QUEUE))
        (message,) = stored(subscription.event_type)
        factories.delivery(
            Status.DELIVERED, subscription=subscription, message=message, lane=None, queue_group=3
        )
        first, second = (made(finish(running(subscription, [message.pk])))[0] for _ in range(2))
        assert first.lane is not None
        assert (first.lane.kind, first.lane.number) == (LaneKind.QUEUE, message.pk % 5)
        assert len({3, first.queue_group, second.queue_group}) == 3

    def test_of_two_replays_is_one_of_each(self, subscription: Subscription) -> None:
        messages = ids(stored(subscription.event_type, 2))
        replays = [finish(running(subscription, messages)) for _ in range(2)]
        assert [len(made(replay)) for replay in replays] == [2, 2]

    def test_is_recorded_in_the_journal(self, subscription: Subscription) -> None:
        replay = ready(subscription, ids(stored(subscription.event_type, 3)))
        assert start_replay(replay, actor="bob")
        finish(replay)
        begins, ends = JournalEntry.objects.filter(kind="REPLAYED").order_by("id")
        assert (begins.actor, begins.subscription_id) == ("bob", subscription.pk)
        assert "3 messages to deliver" in begins.text
        assert "3 of 3 messages became deliveries" in ends.text


class TestReplayBatches:
    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(deliver, "BATCH", 2)

    def test_continue_after_the_previous_one(self, subscription: Subscription) -> None:
        messages = ids(stored(subscription.event_type, 5))
        replay = running(subscription, messages)
        assert [step(replay) for _ in range(3)] == [2, 2, 1]
        assert (replay.state, replay.position, replay.done) == ("DONE", messages[-1], 5)
        assert [row.message_id for row in made(replay)] == messages

    def test_without_a_commit_have_no_effect(self, subscription: Subscription) -> None:
        replay = running(subscription, ids(stored(subscription.event_type, 5)))
        step(replay)
        with transaction.atomic():
            assert deliver.advance_replay(timezone.now()) == 2
            transaction.set_rollback(True)
        assert len(made(replay)) == 2
        assert len(made(finish(replay))) == 5

    def test_keep_the_rate(self, subscription: Subscription) -> None:
        replay = running(subscription, ids(stored(subscription.event_type, 5)), rate=1)
        assert step(replay) == 1
        assert step(replay) == 1
        # Not before its time.
        assert step(replay) == 0
        assert replay.done == 2

    def test_end_with_a_person(self, subscription: Subscription) -> None:
        replay = running(subscription, ids(stored(subscription.event_type, 5)))
        step(replay)
        assert cancel_replay(replay, actor="bob")
        assert step(replay) == 0
        assert (replay.state, len(made(replay))) == ("CANCELLED", 2)
        assert not cancel_replay(replay, actor="bob")
        assert not start_replay(replay, actor="bob")

    def test_never_repeat_a_message(self, subscription: Subscription) -> None:
        replay = finish(running(subscription, ids(stored(subscription.event_type, 3))))
        type(replay).objects.update(
            state=ReplayState.RUNNING, ended_at=None, position=0, done=0, made=0
        )
        replay.refresh_from_db()
        finish(replay)
        assert (replay.made, len(made(replay))) == (0, 3)

    def test_cannot_be_outwitted_by_a_lost_item_either(self, subscription: Subscription) -> None:
        replay = finish(running(subscription, ids(stored(subscription.event_type, 1))))
        ReplayItem.objects.update(delivery_id=None)
        type(replay).objects.update(
            state=ReplayState.RUNNING, ended_at=None, position=0, done=0, made=0
        )
        Delivery.objects.filter(replay=replay).update(
            status=Status.DELIVERED, settled_at=timezone.now()
        )
        finish(replay)
        assert len(made(replay)) == 1

    def test_that_are_complete_are_removed_later(self, subscription: Subscription) -> None:
        replay = finish(running(subscription, ids(stored(subscription.event_type, 3))))
        assert step(replay) == 0
        type(replay).objects.update(ended_at=timezone.now() - timedelta(days=8))
        assert step(replay) == 3
        assert not ReplayItem.objects.exists()
        assert len(made(replay)) == 3


class TestArchivedMessage:
    def test_is_restored_unchanged(self, subscription: Subscription, archive: Path) -> None:
        headers = '{"x-a": "ä"}'
        archived(
            archive,
            subscription.event_type,
            [901],
            body=b"\x00\xff",
            headers=headers,
            destination="crm",
        )
        replay = finish(running(subscription, [901]))
        message = Message.objects.select_related("publisher").get(pk=901)
        assert (bytes(message.body), message.headers) == (b"\x00\xff", {"x-a": "ä"})
        assert (message.published_at, message.event_type) == (seconds(901), subscription.event_type)
        assert (message.owed, message.transaction_id, message.seen_before) == (1, 1901, 1901)
        assert (message.destination, message.edited_from) == ("crm", None)
        assert message.publisher is not None
        assert replay.made == 1

    def test_joins_existing_messages_in_order_of_publication(
        self, subscription: Subscription, archive: Path
    ) -> None:
        there = ids(stored(subscription.event_type, 2))
        later = range(there[-1] + 10_000, there[-1] + 10_200)
        archived(archive, subscription.event_type, later)
        replay = finish(running(subscription, [*there, *later]))
        assert [row.message_id for row in made(replay)] == [*there, *later]
        assert Message.objects.count() == 202

    def test_leaves_the_ids_of_new_messages_alone(
        self, subscription: Subscription, archive: Path
    ) -> None:
        (before,) = stored(subscription.event_type)
        archived(archive, subscription.event_type, [before.pk - 1])
        finish(running(subscription, [before.pk - 1]))
        (after,) = stored(subscription.event_type)
        assert after.pk == before.pk + 1

    def test_of_a_deleted_event_type_is_counted_and_reported(
        self, subscription: Subscription, archive: Path
    ) -> None:
        (there,) = stored(subscription.event_type)
        gone = factories.event_type()
        archived(archive, gone, [there.pk + 1])
        gone.delete()
        replay = finish(running(subscription, [there.pk, there.pk + 1, there.pk + 2]))
        assert (replay.done, replay.made) == (3, 1)
        reported = JournalEntry.objects.filter(text__contains="Not delivered").get()
        assert f"msg_{there.pk + 1}, msg_{there.pk + 2}." in reported.text

    def test_waits_while_the_archive_is_unreadable_and_shows_why(
        self, subscription: Subscription, archive: Path
    ) -> None:
        archived(archive, subscription.event_type, [901])
        file = archive / ArchiveFile.objects.get().path
        aside = file.rename(archive / "aside")
        replay = running(subscription, [901])
        assert step(replay) == 0
        assert (replay.state, replay.done) == ("RUNNING", 0)
        assert "HISTORY_URL" in replay.error
        aside.rename(file)
        # Not at once.
        assert step(replay) == 0
        type(replay).objects.update(due_at=timezone.now())
        assert (finish(replay).made, replay.error) == (1, "")


def test_an_unused_subscription_is_deleted_with_its_replays(subscription: Subscription) -> None:
    ready(subscription, [1, 2])
    subscription.delete()
    assert not ReplayItem.objects.exists()


def test_the_batch_reads_items_by_their_key(subscription: Subscription) -> None:
    replay = running(subscription, [1])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = deliver._left(replay)[:500].explain()
    assert "delivery_replayitem_pkey" in plan
