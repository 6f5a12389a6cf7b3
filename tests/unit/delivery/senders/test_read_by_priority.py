"""CONCURRENT subscribers by priority: urgent messages first, and none waits for ever."""

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Lane
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.senders.claims import Claims
from delivery.senders.context import SenderContext
from subscriptions.models import Processing, Subscriber
from tests.support import factories
from tests.support.receivers import Hold, Receiver
from tests.support.surroundings import NETWORKS
from tests.unit.delivery.senders.read_statements import fetch, independent_parameters, pages
from tests.unit.delivery.senders.running import elsewhere, with_claims


def by_priority(**fields: Any) -> Subscriber:
    return factories.subscriber(processing=Processing.CONCURRENT, by_priority=True, **fields)


def parameters(owner: Subscriber, most: int) -> dict[str, Any]:
    return independent_parameters(owner.lane.pk, rows=most, most=most)


def read(owner: Subscriber, most: int = 8) -> list[int]:
    found = fetch(statement("read_by_priority"), parameters(owner, most))
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

    def test_a_backlog_is_not_read_to_find_the_urgent_ones(self, owner: Subscriber) -> None:
        self.waiting(owner, 0)
        few = pages(statement("read_by_priority"), parameters(owner, 4))
        self.waiting(owner, *[0] * 100)
        assert pages(statement("read_by_priority"), parameters(owner, 4)) <= few + 40


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
            Draft(event_type=of.event_type, headers={"priority": str(each)}, body=b"%d" % each)
            for each in priorities
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
