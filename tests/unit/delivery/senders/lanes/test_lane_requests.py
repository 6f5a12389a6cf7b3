"""The first request of an idle lane is made while its run is being recorded."""

import asyncio

import pytest

from delivery.models import Attempt
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.parcel import Parcel
from tests.support import factories
from tests.unit.delivery.senders.commits.test_commit_requests import SECONDS, lane_of, locked
from tests.unit.delivery.senders.lanes.test_lane import ROW
from tests.unit.delivery.senders.parcels import parcel
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_idle_lane_makes_its_first_request_before_its_run_is_recorded() -> None:
    row = factories.delivery()

    async def scenario(claims: Claims, context: SenderContext) -> None:
        with locked("delivery_lane", lane_of(row)):
            await claims.serve([lane_of(row)])
            lane = context.lanes[lane_of(row)]
            async with asyncio.timeout(SECONDS):
                while lane.request is None:
                    await asyncio.sleep(0)
            # So nothing is sent once the run is recorded. A lane that is only ended begins again.
            claims.close()
        assert lane.request.parcel.delivery_id == row.pk
        assert await elsewhere(Attempt.objects.count) == 0

    with_claims(scenario)


@pytest.mark.parametrize("rate", [None, 10])
def test_a_lane_with_a_pace_makes_none_because_it_waits_before_it_sends(rate: float | None) -> None:
    lane = SenderLane(ROW | {"processing": "", "run_is_concurrent": False, "catch_up_rate": rate})
    asked: list[Parcel] = []
    lane.prepare(asked.append, parcel(1))
    assert bool(asked) == (rate is None)
