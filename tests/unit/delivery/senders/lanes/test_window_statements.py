"""What the statement of every window reads, and what it leaves out.

The order of a statement and the limits that only it has are tested beside it: `read_runs.sql` in
`test_read_connection.py`, `read_due.sql` in `test_read_due.py`, and so on.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.utils import timezone

from delivery.models import Delivery, Lane, LaneKind, Message, Status
from delivery.models.delivery import Redelivery
from delivery.support import held_objects, toggle
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.senders.window_lanes import INDEPENDENT, WINDOWS, WindowLane

pytestmark = pytest.mark.django_db

Toggle = Callable[[Subscription], Any]

HOLDS: dict[str, Toggle] = {
    "subscription": lambda row: toggle.hold_owner(row, actor="ann"),
    "inactive subscription": lambda row: toggle.deactivate_owner(row, actor="ann"),
    "subscriber": lambda row: toggle.hold_owner(row.subscriber, actor="ann"),
    "inactive subscriber": lambda row: toggle.deactivate_owner(row.subscriber, actor="ann"),
    "all sending": lambda _: toggle.hold_owner(held_objects.installation(), actor="ann"),
}
RELEASES: dict[str, Toggle] = {
    "subscription": lambda row: toggle.activate_owner(row, actor="ann"),
    "inactive subscription": lambda row: toggle.activate_owner(row, actor="ann"),
    "subscriber": lambda row: toggle.activate_owner(row.subscriber, actor="ann"),
    "inactive subscriber": lambda row: toggle.activate_owner(row.subscriber, actor="ann"),
    "all sending": lambda _: toggle.activate_owner(held_objects.installation(), actor="ann"),
}
# The ages of the message and of the moment of the retry, in seconds.
PUBLISHED, RETRY = 60.0, 20.0

independent = pytest.mark.parametrize("lane", INDEPENDENT, indirect=True)


@pytest.fixture(params=WINDOWS)
def lane(request: pytest.FixtureRequest, db: None) -> WindowLane:
    return WindowLane(request.param)


def test_untried_deliveries_are_read_in_the_order_of_publication(lane: WindowLane) -> None:
    assert lane.read() == []
    rows = [lane.add().pk for _ in range(3)]
    assert lane.read() == rows


def test_settled_deliveries_are_not_read(lane: WindowLane) -> None:
    for status in set(Status) - {Status.PENDING, Status.IN_FLIGHT}:
        lane.add(status=status)
    assert lane.read() == []


def test_deliveries_of_another_lane_are_not_read(lane: WindowLane) -> None:
    kind = LaneKind.CALLBACK if lane.name == "RETRY" else LaneKind.RETRY
    factories.delivery()
    factories.delivery(subscription=lane.subscription, lane=Lane.objects.get(kind=kind))
    assert lane.read() == []


def test_deliveries_in_memory_are_not_read_again(lane: WindowLane) -> None:
    rows = [lane.add().pk for _ in range(4)]
    assert lane.read(in_memory=rows[:2]) == rows[2:]


def test_a_read_is_bounded_by_bytes_and_never_empty(lane: WindowLane) -> None:
    for _ in range(4):
        lane.add(content=b"x" * 1000)
    assert len(lane.read(bytes=2500)) == 3
    assert len(lane.read(bytes=1)) == 1


@pytest.mark.parametrize("by", HOLDS)
def test_held_deliveries_are_read_in_order_when_they_are_released(
    lane: WindowLane, by: str
) -> None:
    rows = [lane.add().pk for _ in range(3)]
    HOLDS[by](lane.subscription)
    assert lane.read() == []
    RELEASES[by](lane.subscription)
    assert lane.read() == rows


def test_beside_a_held_subscription_the_others_are_read(lane: WindowLane) -> None:
    lane.add()
    row = lane.add(lane.subscribe())
    toggle.hold_owner(lane.subscription, actor="ann")
    assert lane.read() == [row.pk]


def test_a_subscription_held_itself_stays_held_when_its_subscriber_is_released(
    lane: WindowLane,
) -> None:
    lane.add()
    toggle.hold_owner(lane.subscription, actor="ann")
    toggle.deactivate_owner(lane.subscriber, actor="ann")
    toggle.activate_owner(lane.subscriber, actor="ann")
    assert lane.read() == []


def test_overdue_and_volatile_deliveries_of_an_earlier_server_are_not_read(
    lane: WindowLane,
) -> None:
    lane.add(expires_at=TransactionNow() - timedelta(seconds=1))
    started_at = server_started_at()
    lane.add(server_started_at=started_at - timedelta(minutes=1))
    volatile = lane.add(server_started_at=started_at)
    perishable = lane.add(expires_at=TransactionNow() + timedelta(seconds=60))
    lasting = lane.add()
    rows = {row["id"]: row for row in lane.rows()}
    assert list(rows) == [volatile.pk, perishable.pk, lasting.pk]
    assert rows[volatile.pk]["server_started_at"] == started_at
    assert rows[perishable.pk]["seconds_left"] == 60
    assert rows[lasting.pk]["seconds_left"] is None
    assert rows[lasting.pk]["server_started_at"] is None


def server_started_at() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time()")
        ((started_at,),) = cursor.fetchall()
    return started_at


@independent
def test_a_delivery_put_off_is_read_when_it_is_due(lane: WindowLane) -> None:
    row = lane.add(skipped=True, attempts=1, next_attempt_at=timezone.now() + timedelta(seconds=60))
    assert lane.read() == []
    Delivery.objects.filter(pk=row.pk).update(next_attempt_at=TransactionNow())
    assert lane.read() == [row.pk]


@independent
def test_deliveries_to_an_excluded_endpoint_are_not_read(lane: WindowLane) -> None:
    lane.add()
    row = lane.add(lane.subscribe())
    assert lane.read(excluded=[lane.subscription.pk]) == [row.pk]


class TestHeaders:
    """The headers of a message are read only if an attempt may need them."""

    def test_a_subscription_that_forwards_headers_needs_them(self, lane: WindowLane) -> None:
        forwarding = lane.subscribe(forward_headers=["*"])
        plain = lane.add(headers={"x-a": "1"})
        forwarded = lane.add(forwarding, headers={"x-a": "1"})
        assert headers_read(lane) == {plain.pk: None, forwarded.pk: {"x-a": "1"}}

    @pytest.mark.parametrize("name", ["replyto", "inturn-replied-message", "traceparent"])
    def test_a_reply_or_a_trace_needs_them(self, lane: WindowLane, name: str) -> None:
        row = lane.add(headers={name: "Quote.Made"})
        assert headers_read(lane) == {row.pk: {name: "Quote.Made"}}


def headers_read(lane: WindowLane) -> dict[int, Any]:
    return {row["id"]: row["headers"] and orjson.loads(row["headers"]) for row in lane.rows()}


class TestDueReading:
    """Since when a delivery is due, for its trace.

    The database's clock stands still in a transaction, so the seconds are exact.
    """

    def test_the_first_attempt_is_due_when_the_message_is_published(self, lane: WindowLane) -> None:
        assert seconds_due(lane) == PUBLISHED

    def test_a_retry_is_due_when_its_pause_is_over(self, lane: WindowLane) -> None:
        at = TransactionNow() - timedelta(seconds=RETRY)
        assert seconds_due(lane, attempts=1, skipped=True, next_attempt_at=at) == RETRY

    @pytest.mark.parametrize(
        "fields", [{"redelivery": Redelivery.RESUBMITTED}, {"replay_id": 1}, {"attempts": 1}]
    )
    def test_a_moment_that_no_row_has_is_not_known(
        self, lane: WindowLane, fields: dict[str, Any]
    ) -> None:
        assert seconds_due(lane, **fields) is None

    def test_without_traces_nothing_is_computed(self, lane: WindowLane) -> None:
        assert seconds_due(lane, is_traced=False) is None


def seconds_due(lane: WindowLane, *, is_traced: bool = True, **fields: Any) -> float | None:
    """Return the reading of a delivery with these fields, of a message published a minute ago."""
    lane.add(**fields)
    Message.objects.update(published_at=TransactionNow() - timedelta(seconds=PUBLISHED))
    (row,) = lane.rows(is_traced=is_traced)
    seconds: float | None = row["seconds_due"]
    return seconds
