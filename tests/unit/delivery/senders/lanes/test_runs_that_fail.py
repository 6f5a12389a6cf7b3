"""Runs in which deliveries fail: an endpoint that answers gets the whole run, then a pause."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import Delivery, Lane, LaneState, Status
from delivery.senders import context as senders_context
from delivery.senders.context import SenderContext
from delivery.senders.lanes import stops
from delivery.senders.lanes.lane import ROWS_AFTER_FAILURE, SenderLane
from subscriptions.models import Subscription
from tests.support import factories
from tests.support.receivers import OK, Answer, Behaviour, Hold, Received, Receiver
from tests.support.receivers.endpoint import ReceiverEndpoint
from tests.unit.delivery.senders.running import elsewhere
from tests.unit.delivery.senders.test_attempt_held import served

pytestmark = pytest.mark.django_db(transaction=True)

FAILS = Answer(500)
# A pause that no test outlasts.
LONG = {"pause_seconds": 600, "pause_max_seconds": 600}


def subscribed(
    endpoint: ReceiverEndpoint, *, most: int = 500, pauses: dict[str, Any] = LONG
) -> Subscription:
    """Return a subscription of a lane that skips failures, with runs of so many deliveries."""
    owner = factories.subscriber(max_queued_to_send=most, refill_level=most // 5)
    return factories.subscription(
        subscriber=owner, endpoint=endpoint.url, policy=factories.policy(**pauses)
    )


def waiting(subscription: Subscription, count: int = 1, **fields: Any) -> list[int]:
    return [factories.delivery(subscription=subscription, **fields).pk for _ in range(count)]


def blocked(lane: Lane, by: int) -> None:
    """Leave the lane as a sender does that has failed many times and whose pause is over."""
    Lane.objects.filter(pk=lane.pk).update(state=LaneState.BLOCKED, delivery_id=by, failures=9)
    Lane.objects.filter(pk=lane.pk).update(
        next_try_at=Delivery.objects.get(pk=by).message.published_at
    )


def sent(endpoint: ReceiverEndpoint) -> list[int]:
    return [request.delivery for request in endpoint.received]


def during(scenario: Callable[[SenderContext], Awaitable[None]]) -> None:
    asyncio.run(served(scenario))


async def rests(context: SenderContext) -> SenderLane:
    """Wait until the only lane has a pause that is recorded, and return it."""
    while True:
        for lane in context.lanes.values():
            if lane.stops.runs.seconds_left and lane.stops.is_blocked and not lane.is_sending:
                return lane
        await asyncio.sleep(0.01)


def answers(*, good: int, once: int) -> Callable[[Received], Behaviour]:
    """Return a receiver that refuses all but one, and one more the first time."""

    def answer(request: Received) -> Behaviour:
        is_taken = request.delivery == good or (request.delivery == once and request.attempt > 1)
        return OK if is_taken else FAILS

    return answer


def test_good_deliveries_behind_many_failures_wait_for_no_more_than_one_pause(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    of = subscribed(endpoint, pauses={"pause_seconds": 1, "pause_max_seconds": 600})
    (first,) = waiting(of)
    endpoint.follow(answers(good=0, once=0))

    async def scenario(context: SenderContext) -> None:
        await rests(context)
        poisoned = await elsewhere(waiting, of, 60)
        once, good = await elsewhere(waiting, of, 2)
        endpoint.follow(answers(good=good, once=once))
        await elsewhere(
            endpoint.wait_for, lambda got: sum(request.was_accepted for request in got) == 2
        )
        tried = sent(endpoint)
        # First attempts in the order of publication, before the one that had failed.
        assert tried[:64] == [first, *poisoned, once, good, first]
        assert tried.count(once) == 2

    during(scenario)


def test_an_endpoint_that_refuses_everything_gets_one_run_until_the_pause_is_over(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint, most=8)
    old, fresh = waiting(of, 6, skipped=True, attempts=1), waiting(of, 30)

    async def scenario(context: SenderContext) -> None:
        lane = await rests(context)
        # In the order of ids; half of the run at most are old failures.
        assert sent(endpoint) == [*old[:4], *fresh[:4]]
        lane.nudge()
        await elsewhere(endpoint.wait_for_count, 16)
        await rests(context)
        # After a run without success fresh ones come first; of the others those whose last try is
        # the longest ago.
        assert sent(endpoint)[8:12] == fresh[4:8]
        assert sent(endpoint)[12:] == [*old[:2], *old[4:]]

    during(scenario)


def test_fresh_deliveries_take_the_places_that_old_failures_leave(receiver: Receiver) -> None:
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint, most=8)
    (first,) = waiting(of)

    async def scenario(context: SenderContext) -> None:
        lane = await rests(context)
        fresh = await elsewhere(waiting, of, 30)
        lane.nudge()
        await elsewhere(endpoint.wait_for_count, 9)
        await rests(context)
        assert sent(endpoint) == [first, *fresh[:4], first, *fresh[4:7]]

    during(scenario)


def test_in_the_pause_after_a_run_one_fresh_delivery_is_sent_now_and_then(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "EARLY_ATTEMPT_SECONDS", 0.1)
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint)
    (tried,) = waiting(of)

    async def scenario(context: SenderContext) -> None:
        lane = await rests(context)
        row = await elsewhere(lambda: Lane.objects.get(pk=lane.id))
        first, second, good = await elsewhere(waiting, of, 3)
        lane.notify()
        await elsewhere(endpoint.wait_for_count, 3)
        # The early attempts changed neither the next try nor the delivery that the row names.
        later = await elsewhere(lambda: Lane.objects.get(pk=lane.id))
        assert (later.delivery_id, later.failures) == (tried, 1)
        assert (later.next_try_at, later.since) == (row.next_try_at, row.since)
        endpoint.follow(answers(good=good, once=first))
        await elsewhere(endpoint.wait_for, lambda got: got[-1].delivery == first)
        # One after another, in the order of publication; the first success ends the pause, and
        # then those that failed are tried at once.
        assert sent(endpoint) == [tried, first, second, good, tried, first]

    during(scenario)


def test_a_lane_that_was_blocked_tries_the_whole_run_once_its_endpoint_answers(
    receiver: Receiver,
) -> None:
    endpoint = receiver.endpoint("a")
    of = subscribed(endpoint)
    poisoned = waiting(of, 3 * ROWS_AFTER_FAILURE)
    (good,) = waiting(of)
    blocked(of.subscriber.lane, poisoned[0])
    endpoint.follow(answers(good=good, once=0))

    async def scenario(context: SenderContext) -> None:
        await elsewhere(endpoint.wait_for, lambda got: got[-1:] and got[-1].was_accepted)
        assert sent(endpoint) == [*poisoned, good]

    during(scenario)


def test_a_run_that_memory_divides_is_one_run(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(senders_context, "PREFETCH_ROWS", 0)
    endpoint = receiver.endpoint("a")
    endpoint.always(FAILS)
    of = subscribed(endpoint, most=40)
    earlier = timezone.now() - timedelta(minutes=1)
    old = waiting(of, 30, skipped=True, attempts=1, next_attempt_at=earlier)
    fresh = waiting(of, 30)

    async def scenario(context: SenderContext) -> None:
        await rests(context)
        tried = sent(endpoint)
        assert len(tried) == len(set(tried)) == 40
        assert len(set(tried) & set(old)) == 20
        assert [id for id in tried if id in fresh] == fresh[:20]

    during(scenario)


def test_the_lanes_row_names_the_deliveries_in_the_order_in_which_they_are_sent(
    receiver: Receiver,
) -> None:
    """A successor takes the first unsettled one for the delivery in doubt."""
    endpoint, hold = receiver.endpoint("a"), Hold(FAILS)
    endpoint.always(FAILS)
    of = subscribed(endpoint)
    old = waiting(of, 2)

    async def scenario(context: SenderContext) -> None:
        lane = await rests(context)
        fresh = await elsewhere(waiting, of, 2)
        endpoint.next(hold)
        lane.nudge()
        await elsewhere(endpoint.wait_for_count, 3)
        row = await elsewhere(lambda: Lane.objects.get(pk=lane.id))
        assert row.run_ids == [*fresh, *old]
        hold.release()
        await rests(context)
        assert sent(endpoint) == [*old, *fresh, *old]

    during(scenario)
    assert set(Delivery.objects.values_list("status", flat=True)) == {Status.PENDING}


def test_the_rest_of_a_failing_run_is_not_sent_once_its_subscription_is_inactive(
    receiver: Receiver,
) -> None:
    endpoint, hold = receiver.endpoint("a"), Hold(FAILS)
    endpoint.next(FAILS, hold)
    of, other = subscribed(endpoint), receiver.endpoint("b")
    beside = factories.subscription(subscriber=of.subscriber, endpoint=other.url, policy=of.policy)
    waiting(of, 20)
    (flows,) = waiting(beside)

    async def scenario(context: SenderContext) -> None:
        await elsewhere(endpoint.wait_for_count, 2)
        await elsewhere(_make_inactive, of)
        while context.endpoints[of.pk].is_active:
            await asyncio.sleep(0)
        hold.release()
        await elsewhere(other.wait_for_count, 1)
        assert len(sent(endpoint)) == 2

    during(scenario)
    assert sent(other) == [flows]


def _make_inactive(of: Subscription) -> None:
    of.status = "INACTIVE"
    of.save()
