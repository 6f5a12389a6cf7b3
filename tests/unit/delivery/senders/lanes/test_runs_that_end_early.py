"""Runs that end early or leave deliveries out: their record, their pause, and what is first."""

import asyncio
from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.models import Delivery, Lane
from delivery.senders import context as senders_context
from delivery.senders.clock import seconds_since_boot
from delivery.senders.context import SenderContext
from delivery.senders.lanes.window import WHOLE_LANE
from tests.support import factories
from tests.support.receivers import Receiver
from tests.unit.delivery.senders.lanes.test_runs_that_fail import (
    FAILS,
    during,
    rests,
    sent,
    subscribed,
    waiting,
)
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_run_of_an_early_attempt_that_failed_is_emptied(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint)
    waiting(of)

    async def scenario(context: SenderContext) -> None:
        lane = await rests(context)
        await elsewhere(waiting, of)
        lane.keys.health(WHOLE_LANE).try_now()
        lane.notify()
        await elsewhere(endpoint.wait_for_count, 2)
        while await elsewhere(lambda: Lane.objects.get(pk=lane.id).run_ids):
            await asyncio.sleep(0.01)
        assert lane.stops.is_blocked

    during(scenario)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_overdue_delivery_in_a_run_without_success_saves_it_no_pause(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint)
    deliveries = waiting(of, 3)
    Delivery.objects.filter(pk=deliveries[place]).update(
        expires_at=timezone.now() + timedelta(hours=1)
    )
    # They are read in time, and it is later when they are sent.
    monkeypatch.setattr(senders_context, "seconds_since_boot", lambda: seconds_since_boot() + 7200)

    async def scenario(context: SenderContext) -> None:
        await rests(context)
        del deliveries[place]
        assert sent(endpoint) == deliveries

    during(scenario)


def test_a_skipped_delivery_that_blocks_after_a_change_of_policy_stays_first(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.next(FAILS)
    of = subscribed(endpoint, most=16)
    of.policy = factories.policy("strict")
    of.save()
    skipped, fresh = waiting(of, 12, skipped=True, attempts=1), waiting(of, 12)

    async def scenario(context: SenderContext) -> None:
        await elsewhere(endpoint.wait_for_count, 1)
        (lane,) = context.lanes.values()
        while not lane.stops.is_blocked or lane.is_sending:
            await asyncio.sleep(0.001)
        assert not await elsewhere(lambda: Delivery.objects.get(pk=skipped[0]).skipped)
        await elsewhere(endpoint.wait_for_count, 25)
        assert sent(endpoint)[:2] == [skipped[0]] * 2
        assert sorted(sent(endpoint)[1:]) == [*skipped, *fresh]

    during(scenario)
