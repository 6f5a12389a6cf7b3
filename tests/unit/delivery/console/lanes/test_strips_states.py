"""REST shows a lane as SENDING while a sender sends; pages say how its subscriber stands."""

import asyncio
from datetime import timedelta
from ipaddress import IPv4Network

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from delivery.console.lanes.strips import read_strips
from delivery.models import Delivery, Lane, LaneKind, Status, UrlHealth, UrlState
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.standing.vocabulary import State
from subscriptions.models import Mode
from tests.support import factories
from tests.support.receivers import Answer, Hold, Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.api.client import caller
from tests.unit.delivery.console.blocking import block
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

# Only a hang takes so long.
SECONDS = 30


def of_sender(lane: Lane) -> str:
    """Return the sender's state, which only REST shows."""
    state: str = caller().get(f"lanes/{lane}").body["state"]
    return state


def shown(lane: Lane) -> set[str]:
    """Return the state in the list of lanes, in the lane's strip, and on the subscriber's page."""
    client = Client()
    user, _ = User.objects.get_or_create(username="ann", is_staff=True, is_superuser=True)
    client.force_login(user)
    rows = client.get("/admin/delivery/lane/").context["cl"].result_list
    (row,) = (row for row in rows if row.pk == lane.pk)
    (strip,) = read_strips([lane.pk])
    page = client.get(f"/admin/subscriptions/subscriber/{lane.subscriber_id}/").context["status"]
    return {row.standing.state, strip.state, page.standing.state}


def test_a_lane_is_idle_while_its_url_is_frozen_after_a_failed_attempt(receiver: Receiver) -> None:
    endpoint, under_way = receiver.endpoint("a"), Hold(Answer(503))
    endpoint.always(under_way)
    # It moves a failed delivery to the retry lane.
    policy = factories.policy("workfront-48h")
    row = factories.delivery(
        subscription=factories.subscription(endpoint=endpoint.url, policy=policy)
    )
    lane = row.lane
    assert lane is not None

    def is_moved() -> bool:
        return Delivery.objects.filter(pk=row.pk, lane__kind=LaneKind.RETRY).exists()

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        await elsewhere(endpoint.wait_for_count, 1)
        assert await elsewhere(of_sender, lane) == "SENDING"
        assert await elsewhere(shown, lane) == {"MOVING"}
        under_way.release()
        async with asyncio.timeout(SECONDS):
            while not await elsewhere(is_moved):
                await asyncio.sleep(0.02)

    with_claims(scenario, networks=[IPv4Network(NETWORKS)])
    UrlHealth.objects.update_or_create(url=endpoint.url, defaults={"state": UrlState.FROZEN})
    assert Delivery.objects.get().status == Status.PENDING
    assert of_sender(lane) == "IDLE"
    assert shown(lane) == {"STOPPED"}


@pytest.mark.parametrize(
    ("recorded", "state"), [([0, 0], "SENDING"), ([1, 0], "SENDING"), ([1, 1], "IDLE")]
)
def test_only_what_is_as_recorded_is_being_sent(recorded: list[int], state: str) -> None:
    subscription = factories.subscription()
    rows = [factories.delivery(subscription=subscription) for _ in range(2)]
    lane = subscription.subscriber.lane
    Lane.objects.filter(pk=lane.pk).update(
        run_ids=[row.pk for row in rows], run_attempts=recorded, run_is_concurrent=True
    )
    assert of_sender(lane) == state
    assert shown(lane) == {"MOVING"}


@pytest.mark.parametrize("state", State)
def test_the_filter_keeps_the_lanes_that_are_shown_so(state: State) -> None:
    held = factories.subscription(status="HELD")
    factories.delivery(subscription=held)
    factories.subscription(status="INACTIVE")
    block(factories.delivery())
    factories.delivery()
    tried = factories.delivery(Status.FAILED)
    factories.endpoint_down(tried, lane_id=tried.subscription.subscriber.lane.pk)
    earlier = timezone.now() - timedelta(hours=1)
    factories.delivery(message=factories.message(published_at=earlier))
    queue = Lane.objects.get(kind=LaneKind.QUEUE, number=2)
    factories.delivery(lane=queue, queue_group=0)
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    every = client.get("/admin/delivery/lane/").context["cl"].result_list
    kept = client.get(f"/admin/delivery/lane/?state={state}").context["cl"].result_list
    expected = {row.pk for row in every if row.standing.state == state}
    assert {row.pk for row in kept} == expected
    assert expected


def test_an_empty_lane_shows_what_waits_for_its_subscriber_elsewhere() -> None:
    box = factories.subscription(mode=Mode.PULL)
    for _ in range(3):
        factories.delivery(subscription=box)
    client = Client()
    client.force_login(User.objects.create_superuser("ann"))
    (row,) = client.get("/admin/delivery/lane/?state=MOVING").context["cl"].result_list
    assert (row.subscriber, str(row.standing.waiting)) == (box.subscriber, "3")
