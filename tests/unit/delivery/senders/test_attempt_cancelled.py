"""A cancelled delivery is not sent once its sender is notified, even if it was read before."""

import asyncio
from ipaddress import ip_network
from typing import Any

import psycopg
import pytest

from delivery.database.connections import connection_parameters
from delivery.lifecycle import transitions
from delivery.models import Delivery, Status
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from subscriptions.models import Processing
from tests.support import factories
from tests.support.receivers import Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.running import elsewhere, with_claims

pytestmark = pytest.mark.django_db(transaction=True)

# Only a hang takes so long.
SECONDS = 30


@pytest.mark.parametrize("processing", [Processing.SERIAL, Processing.CONCURRENT])
def test_a_delivery_cancelled_after_it_was_read_is_not_sent(
    receiver: Receiver, processing: Processing
) -> None:
    endpoint = receiver.endpoint("a")
    wants: dict[str, Any] = {"processing": processing}
    if processing == Processing.CONCURRENT:
        wants["max_in_flight"] = 2
    subscription = factories.subscription(
        subscriber=factories.subscriber(**wants), endpoint=endpoint.url
    )
    rows = [factories.delivery(subscription=subscription) for _ in range(4)]
    cancelled, kept = [row.pk for row in rows[:3]], rows[3]
    lane_id = rows[0].lane_id
    assert lane_id is not None

    async def scenario(claims: Claims, context: SenderContext) -> None:
        with psycopg.connect(**connection_parameters()) as other:
            # Read deliveries are recorded before they are sent, and the record waits for this lock.
            other.execute("SELECT FROM delivery_lane WHERE id = %s FOR NO KEY UPDATE", [lane_id])
            await claims.serve([lane_id])
            async with asyncio.timeout(SECONDS):
                while not context.group_commit.locked_lanes:
                    await context.session.members()
            await elsewhere(lambda: transitions.cancel_deliveries(cancelled, actor="ann"))
            # As when it is notified of the commit.
            context.lanes[lane_id].nudge()
        async with asyncio.timeout(SECONDS):
            while await elsewhere(Delivery.objects.pending().exists):
                await asyncio.sleep(0.02)

    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]
    assert [request.delivery for request in endpoint.received] == [kept.pk]
    statuses = dict(Delivery.objects.values_list("pk", "status"))
    assert statuses == dict.fromkeys(cancelled, Status.CANCELLED) | {kept.pk: Status.DELIVERED}
