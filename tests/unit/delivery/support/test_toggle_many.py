"""Holding and releasing 100,000 waiting deliveries costs what holding and releasing ten costs."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from delivery.database.statements import statement
from delivery.models import Delivery, Lane
from delivery.models.shard import SHARDS
from delivery.support import held_objects, toggle
from delivery.support.held_objects import Held
from subscriptions.models import Subscription
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture
from tests.unit.delivery.senders.read_statements import fetch, run_parameters

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept_sequences")]

MANY = 100_000
ROWS = 50

_FILL = """
    WITH made AS (
        INSERT INTO delivery_message (event_type_id, headers, content_type, body)
        SELECT %s, '{}', 'application/json', '{}' FROM generate_series(1, %s)
        RETURNING id
    )
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, lane_id, status, attempts, skipped, redelivery, reason,
        receive_count
    )
    SELECT id << 20, id, %s, %s, 'PENDING', 0, false, '', '', 0 FROM made
"""


def filled(count: int) -> Subscription:
    """Return a subscription with so many waiting deliveries."""
    made = factories.subscription()
    lane_id = made.subscriber.lane.pk
    with connection.cursor() as cursor:
        cursor.execute(_FILL, [made.event_type_id, count, made.pk, lane_id])
    return made


def owners(of: Subscription) -> list[Held]:
    return [of, of.subscriber, held_objects.installation()]


def read(lane: Lane) -> list[int]:
    return [row["id"] for row in fetch(statement("read_runs"), run_parameters(lane.pk, rows=ROWS))]


def lanes_with_work() -> set[int]:
    found = fetch(statement("lanes_with_work"), {"shard": list(range(SHARDS))})
    return {row["lane_id"] for row in found}


def statements(act: Any, owner: Held) -> int:
    with CaptureQueriesContext(connection) as captured:
        act(owner, actor="ann")
    return len(captured)


def test_released_the_lane_goes_on_with_the_first() -> None:
    subscription = filled(MANY)
    lane = subscription.subscriber.lane
    first = list(Delivery.objects.order_by("id").values_list("pk", flat=True)[:ROWS])
    other = factories.delivery(
        subscription=factories.subscription(subscriber=subscription.subscriber)
    )
    toggle.hold_owner(subscription, actor="ann")
    # What is published for another subscription of the lane does not wait behind the held ones.
    assert read(lane) == [other.pk]
    toggle.hold_owner(subscription.subscriber, actor="ann")
    assert (read(lane), lanes_with_work()) == ([], set())
    toggle.activate_owner(subscription.subscriber, actor="ann")
    toggle.activate_owner(subscription, actor="ann", catch_up_rate=5)
    assert (read(lane), lanes_with_work()) == (first, {lane.pk})
    assert Delivery.objects.pending().count() == MANY + 1


def test_the_number_of_statements_does_not_grow() -> None:
    taken = [
        [
            (statements(toggle.hold_owner, owner), statements(toggle.activate_owner, owner))
            for owner in owners(filled(count))
        ]
        for count in (10, MANY)
    ]
    assert taken[0] == taken[1]
