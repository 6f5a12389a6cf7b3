"""CONCURRENT subscribers by priority: urgent messages first, and none waits for ever."""

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Delivery, Lane, LaneKind, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from delivery.senders.lanes.window import LEAST_BY_PRIORITY, window_of
from delivery.support import toggle
from subscriptions.models import Kind, Mode, Processing, Subscriber
from tests.support import factories
from tests.support.receivers import Hold, Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.reading import fetch
from tests.unit.delivery.senders.running import elsewhere, with_claims
from tests.unit.delivery.senders.test_lane import ROW


def by_priority(**fields: Any) -> Subscriber:
    return factories.subscriber(processing=Processing.CONCURRENT, by_priority=True, **fields)


def parameters(owner: Subscriber, most: int, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"lane": owner.lane.pk, "rows": most, "most": most, "bytes": 1_000_000}
    given |= {"in_memory": [], "excluded": [], "excluded_origins": [], "is_traced": False}
    return given | fields


def read(owner: Subscriber, most: int = 8, **fields: Any) -> list[int]:
    found = fetch(statement("read_by_priority"), parameters(owner, most, **fields))
    return [row["id"] for row in found]


@pytest.mark.django_db
class TestReadingByPriority:
    @pytest.fixture
    def owner(self) -> Subscriber:
        return by_priority()

    def waiting(self, owner: Subscriber, *priorities: int | None) -> list[int]:
        of = owner.subscriptions.first() or factories.subscription(subscriber=owner)
        return [
            factories.delivery(subscription=of, priority=priority).pk for priority in priorities
        ]

    def test_the_most_urgent_is_first_and_the_older_of_two_equal_ones(
        self, owner: Subscriber
    ) -> None:
        low, usual, high, also_usual = self.waiting(owner, 1, 4, 9, 4)
        assert read(owner) == [high, usual, also_usual, low]

    def test_a_delivery_without_a_priority_counts_as_usual(self, owner: Subscriber) -> None:
        low, without, high = self.waiting(owner, 3, None, 5)
        assert read(owner) == [high, without, low]

    def test_the_fourth_of_four_is_the_oldest(self, owner: Subscriber) -> None:
        oldest, second, *urgent = self.waiting(owner, 0, 0, *[9] * 12)
        found = read(owner, 8)
        assert found == [*urgent[:3], oldest, *urgent[3:6], second]

    def test_an_urgent_one_is_found_behind_a_long_backlog(self, owner: Subscriber) -> None:
        self.waiting(owner, *[0] * 20)
        (urgent,) = self.waiting(owner, 9)
        assert read(owner, 4)[0] == urgent

    def test_the_oldest_has_its_place_among_many_subscriptions(self, owner: Subscriber) -> None:
        of = factories.subscription(subscriber=owner)
        oldest = factories.delivery(subscription=of, priority=0).pk
        factories.delivery(subscription=of, priority=9)
        for _ in range(6):
            other = factories.subscription(subscriber=owner)
            for _ in range(3):
                factories.delivery(subscription=other, priority=9)
        assert oldest in read(owner, 4)

    def test_a_due_retry_is_not_behind_the_urgent_ones(self, owner: Subscriber) -> None:
        self.waiting(owner, *[9] * 8)
        of = owner.subscriptions.get()
        past = timezone.now() - timedelta(seconds=60)
        due = factories.delivery(
            subscription=of, skipped=True, attempts=1, next_attempt_at=past, priority=0
        ).pk
        later = timezone.now() + timedelta(seconds=60)
        factories.delivery(
            subscription=of, skipped=True, attempts=1, next_attempt_at=later, priority=9
        )
        found = read(owner, 4)
        assert due in found[:2]
        assert len(found) == 4

    def test_held_taken_and_excluded_deliveries_are_left_out(self, owner: Subscriber) -> None:
        first, second = self.waiting(owner, 9, 8)
        of = owner.subscriptions.get()
        assert read(owner, in_memory=[first]) == [second]
        assert read(owner, excluded=[of.pk]) == []
        toggle.hold_owner(of, actor="ann")
        assert read(owner) == []

    def test_a_backlog_is_not_read_to_find_the_urgent_ones(self, owner: Subscriber) -> None:
        self.waiting(owner, 0)
        few = self.pages(owner)
        self.waiting(owner, *[0] * 100)
        assert self.pages(owner) <= few + 40

    def pages(self, owner: Subscriber) -> int:
        plan: Any = fetch(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement('read_by_priority')}",
            parameters(owner, 4),
        )
        found = plan[0]["QUERY PLAN"][0]["Plan"]
        return int(found["Shared Hit Blocks"]) + int(found["Shared Read Blocks"])


class TestPublishingWithPriority:
    def priorities(self, owner: Subscriber, *sent: str | None, **fields: Any) -> list[int | None]:
        of = factories.subscription(subscriber=owner, **fields)
        drafts = [
            Draft(
                event_type=of.event_type,
                headers={} if delivery is None else {"priority": delivery},
                body=b"{}",
            )
            for delivery in sent
        ]
        publish(factories.publisher(), drafts)
        found = Delivery.objects.filter(subscription=of).order_by("id")
        return list(found.values_list("priority", flat=True))

    def test_the_header_is_a_digit_and_anything_else_is_usual(self, db: None) -> None:
        sent = ("9", " 0 ", None, "low", "10", "-1", "٣")
        assert self.priorities(by_priority(), *sent) == [9, 0, 4, 4, 4, 4, 4]

    def test_others_in_the_same_batch_have_none(self, db: None) -> None:
        owner = by_priority()
        event_type = factories.event_type()
        serial = factories.subscription(event_type=event_type)
        assert self.priorities(owner, "9", "1", event_type=event_type) == [9, 1]
        assert {row.priority for row in Delivery.objects.filter(subscription=serial)} == {None}

    def test_serial_subscribers_queues_and_mailboxes_ignore_it(self, db: None) -> None:
        serial = factories.subscriber(by_priority=True)
        queue = factories.event_type(kind=Kind.QUEUE)
        assert self.priorities(serial, "9") == [None]
        assert self.priorities(by_priority(), "9", event_type=queue) == [None]
        assert self.priorities(by_priority(), "9", mode=Mode.PULL) == [None]


def test_a_settled_and_reopened_delivery_has_no_priority(db: None) -> None:
    row = factories.delivery(
        subscription=factories.subscription(subscriber=by_priority()), priority=9
    )
    factories.settle(row, Status.REJECTED)
    assert Delivery.objects.get(pk=row.pk).priority is None


def test_a_lane_by_priority_holds_few_deliveries_in_memory() -> None:
    def capacity(**fields: Any) -> int | None:
        return window_of(LaneKind.TOPIC, ROW | {"by_priority": True} | fields).capacity

    assert capacity() == LEAST_BY_PRIORITY
    assert capacity(max_in_flight=100) == 400
    assert capacity(max_in_flight=1000) == 500
    assert capacity(max_queued_to_send=1) == 4
    assert window_of(
        LaneKind.TOPIC, ROW | {"by_priority": True, "processing": "SERIAL"}
    ).records_ahead


@pytest.mark.django_db(transaction=True)
def test_an_urgent_message_overtakes_those_that_wait(receiver: Receiver) -> None:
    hold = Hold()
    endpoint = receiver.endpoint("a")
    endpoint.next(hold)
    owner = by_priority(max_in_flight=1, max_queued_to_send=4, refill_level=0)
    of = factories.subscription(subscriber=owner, endpoint=endpoint.url)
    publisher = factories.publisher()
    lane: Lane = owner.lane

    def send(*priorities: int) -> None:
        drafts = [
            Draft(
                event_type=of.event_type, headers={"priority": str(priority)}, body=b"%d" % priority
            )
            for priority in priorities
        ]
        publish(publisher, drafts)

    send(4)

    async def scenario(claims: Claims, context: SenderContext) -> None:
        await claims.serve([lane.pk])
        await elsewhere(endpoint.wait_for_count, 1)
        await elsewhere(send, 2, 3, 9)
        context.lanes[lane.pk].notified.set()
        hold.release()
        await elsewhere(endpoint.wait_for_count, 4)

    with_claims(scenario, networks=[ip_network(NETWORKS)])  # type: ignore[list-item]
    assert [request.body for request in endpoint.received] == [b"4", b"9", b"3", b"2"]
