"""The jobs of a lane: a failure of one ends the lane, and never affects another's commit."""

import asyncio
from ipaddress import ip_network

import pytest

from delivery.models import Attempt, Delivery, Lane, Status
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes.in_flight import Jobs
from delivery.senders.shards.claimed_shards import LaneLostError
from subscriptions.models import Processing
from tests.support import factories
from tests.support.receivers import Hold, Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.lanes.test_stock import serial
from tests.unit.delivery.senders.running import elsewhere, with_claims
from tests.unit.delivery.senders.test_attempt_cancelled import SECONDS


def test_an_ended_job_reports_its_fault() -> None:
    reported: list[Exception | None] = []

    async def well() -> None:
        """A job without work."""

    async def ill() -> None:
        raise ValueError

    async def scenario() -> None:
        jobs = Jobs(reported.append)
        jobs.begin(well())
        jobs.begin(ill())
        assert len(jobs) == 2
        while jobs:
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert [type(fault) for fault in reported] == [type(None), ValueError]


def test_a_fault_ends_the_lane_after_its_other_jobs_and_a_lost_lane_cuts_their_attempts_off() -> (
    None
):
    async def scenario() -> None:
        lane = serial()
        with lane.in_flight.probing():
            lane.fail(ValueError())
            assert lane.is_yielding
            lane.fail(LaneLostError())
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(SECONDS)
        assert isinstance(lane.fault, ValueError)

    asyncio.run(scenario())


@pytest.mark.django_db(transaction=True)
def test_an_outcome_is_recorded_though_another_job_of_the_lane_failed(receiver: Receiver) -> None:
    hold = Hold()
    endpoint = receiver.endpoint("a")
    endpoint.next(hold)
    owner = factories.subscriber(processing=Processing.CONCURRENT, max_in_flight=2)
    row = factories.delivery(
        subscription=factories.subscription(subscriber=owner, endpoint=endpoint.url)
    )
    lane: Lane = owner.lane

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        await elsewhere(endpoint.wait_for_count, 1)
        served = context.lanes[lane.pk]

        async def ill() -> None:
            raise ValueError

        served.jobs.begin(ill())
        task = served.task
        assert task is not None
        while served.fault is None:
            await asyncio.sleep(0)
        hold.release()
        async with asyncio.timeout(SECONDS):
            await task

    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]
    assert Delivery.objects.get(pk=row.pk).status == Status.DELIVERED
    assert Attempt.objects.count() == 1
