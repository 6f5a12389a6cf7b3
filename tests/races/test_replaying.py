"""A replay's batch meets a person, retention or another machine at the same rows."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from django.db import connections, transaction
from django.utils import timezone
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.maintenance import retention
from delivery.maintenance.duty import Duty
from delivery.models import Delivery, Message, ReplayState, Status
from delivery.support.replays import deliver
from delivery.support.replays.replays import cancel_replay
from subscriptions.models import Subscription
from tests.races.transactions import meet, unfinished
from tests.support import factories
from tests.unit.delivery.maintenance.retaining import are_there, old, run_whole
from tests.unit.delivery.support.replays.ready_replay import archived, made, ready, running

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def archive(settings: Settings, tmp_path: Path) -> Path:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT,
        history_url=str(tmp_path),
        retention_unarchived=True,
        retention_days=dict.fromkeys(DEFAULT_DAYS, 1),
    )
    return tmp_path


@pytest.fixture
def subscription() -> Subscription:
    return factories.subscription()


def batch() -> None:
    with transaction.atomic():
        deliver.advance_replay(timezone.now())


class TestCancellingAReplay:
    def test_cancelling_waits_for_the_running_batch(self, subscription: Subscription) -> None:
        message = factories.message(event_type=subscription.event_type)
        replay = running(subscription, [message.pk, message.pk + 1], rate=1)
        assert meet(batch, partial(cancel_replay, replay, actor="bob")) is None
        replay.refresh_from_db()
        assert (replay.state, replay.made, len(made(replay))) == (ReplayState.CANCELLED, 1, 1)

    def test_a_batch_does_not_wait_for_a_committed_cancellation_and_creates_nothing(
        self, subscription: Subscription
    ) -> None:
        message = factories.message(event_type=subscription.event_type)
        replay = running(subscription, [message.pk])
        with unfinished(partial(cancel_replay, replay, actor="bob")):
            batch()
        batch()
        assert made(replay) == []


class TestRetention:
    def test_spares_only_messages_still_ahead_of_a_running_replay(
        self, subscription: Subscription
    ) -> None:
        before, waiting, other = (old(subscription=subscription) for _ in range(3))
        running(subscription, [before.message_id])
        ready(subscription, [waiting.message_id])
        run_whole()
        assert are_there(before.message, waiting.message, other.message) == [True, False, False]

    def test_removing_a_message_delays_the_replay_which_restores_it(
        self, subscription: Subscription, archive: Path
    ) -> None:
        row = old(subscription=subscription)
        archived(archive, subscription.event_type, [row.message_id])
        # Counted before the pass begins, started while it is running.
        replay = ready(subscription, [row.message_id])

        def start_and_deliver() -> None:
            type(replay).objects.filter(pk=replay.pk).update(state=ReplayState.RUNNING)
            batch()

        assert meet(_remove, start_and_deliver) is None
        (delivery,) = made(replay)
        assert (delivery.message_id, delivery.status) == (row.message_id, Status.PENDING)
        assert Delivery.objects.count() == 1

    def test_skips_messages_locked_by_a_batch(self, subscription: Subscription) -> None:
        row, other = old(subscription=subscription), old(subscription=subscription)
        replay = running(subscription, [row.message_id])
        with unfinished(batch):
            run_whole()
        assert are_there(row.message, other.message) == [True, False]
        run_whole()
        # The new delivery is not settled.
        assert are_there(row.message) == [True]
        assert len(made(replay)) == 1


def test_of_two_machines_one_creates_a_batch(subscription: Subscription) -> None:
    message = factories.message(event_type=subscription.event_type)
    replay = running(subscription, [message.pk])
    duties = [Duty("replays", deliver.advance_replay) for _ in range(2)]
    both = threading.Barrier(2)

    def attend(duty: Duty) -> None:
        try:
            both.wait(10)
            for _ in range(20):
                duty.run_part(timezone.now())
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as machines:
        list(machines.map(attend, duties))
    assert [duty.failures for duty in duties] == [0, 0]
    assert len(made(replay)) == 1


def test_two_replays_restore_an_archived_message_once(
    subscription: Subscription, archive: Path
) -> None:
    archived(archive, subscription.event_type, range(901, 911))
    first, second = (running(subscription, range(901, 911)) for _ in range(2))
    for replay_id in (first, second):
        replay_id.refresh_from_db()
    while ReplayState.RUNNING in (first.state, second.state):
        batch()
        first.refresh_from_db()
        second.refresh_from_db()
    assert Message.objects.count() == 10
    assert [len(made(replay_id)) for replay_id in (first, second)] == [10, 10]


def _remove() -> None:
    retention.advance_pass(timezone.now())
