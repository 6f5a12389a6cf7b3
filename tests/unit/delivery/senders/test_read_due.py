"""Reading without order: due deliveries, fair shares, and no more than requested."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from delivery.database.statements import statement
from delivery.models import Callback, Delivery, Lane, LaneKind
from subscriptions.models import Processing, Subscriber, Subscription
from tests.support import factories
from tests.unit.delivery.senders.read_statements import fetch, independent_parameters

pytestmark = pytest.mark.django_db


def lane_id(kind: LaneKind) -> int:
    return Lane.objects.get(kind=kind).pk


def read(kind: LaneKind, **fields: Any) -> list[dict[str, Any]]:
    lane = fields.pop("lane", None) or lane_id(kind)
    return fetch(statement("read_due"), independent_parameters(lane, **{"rows": 100} | fields))


def retried(of: Subscription, *, due_in: float = -60, attempts: int = 1) -> Delivery:
    row = factories.delivery(
        subscription=of,
        lane_id=lane_id(LaneKind.RETRY),
        attempts=attempts,
        skipped=True,
        next_attempt_at=timezone.now() + timedelta(seconds=due_in),
    )
    factories.attempt(row, number=1, started_at=timezone.now() - timedelta(seconds=60))
    return row


def answers(url: str, count: int, *, of: Subscription) -> Sequence[Delivery]:
    """Create answers to callbacks with that URL, never tried."""
    found = []
    for _ in range(count):
        now = timezone.now()
        callback = Callback.objects.create(
            message=factories.message(),
            queue_group=0,
            url=url,
            answer=factories.message(),
            answered_at=now,
            expires_at=now,
        )
        found.append(
            factories.delivery(
                subscription=of, lane_id=lane_id(LaneKind.CALLBACK), callback=callback
            )
        )
    return found


def test_the_earliest_due_delivery_is_first() -> None:
    of = factories.subscription()
    later, earlier = retried(of, due_in=-60), retried(of, due_in=-90)
    assert [row["id"] for row in read(LaneKind.RETRY)] == [earlier.pk, later.pk]


def test_the_schedule_starts_at_the_first_counted_failure() -> None:
    retried(factories.subscription(), attempts=3)
    (row,) = read(LaneKind.RETRY)
    assert row["seconds_since_first"] == pytest.approx(60, abs=5)


def test_each_subscription_has_its_share_of_the_rows() -> None:
    first, other = factories.subscription(), factories.subscription()
    for _ in range(20):
        retried(first, due_in=-100)
    retried(other)
    found = read(LaneKind.RETRY, rows=10)
    assert [row["subscription_id"] for row in found] == [first.pk] * 5 + [other.pk]
    assert {row["share"] for row in found} == {5}


def test_callbacks_to_a_server_that_is_down_do_not_hide_those_to_another() -> None:
    of = factories.subscription()
    answers("https://down.example:8443/a?b", 12, of=of)
    (up,) = answers("https://up.example/x", 1, of=of)
    found = read(LaneKind.CALLBACK, rows=4, excluded_origins=["https://down.example:8443"])
    assert [(row["id"], row["callback_origin"]) for row in found] == [(up.pk, "https://up.example")]


def test_callbacks_to_one_server_share_its_health_whatever_their_paths() -> None:
    of = factories.subscription()
    answers("https://up.example/1?x=1", 1, of=of)
    answers("https://up.example/2#y", 1, of=of)
    assert {row["callback_origin"] for row in read(LaneKind.CALLBACK)} == {"https://up.example"}


class TestNoMoreThanAsked:
    """A CONCURRENT subscriber's `max_queued_to_send`."""

    @pytest.fixture
    def owner(self) -> Subscriber:
        return factories.subscriber(processing=Processing.CONCURRENT)

    def waiting(self, of: Subscription, *, fresh: int = 0, due: int = 0) -> None:
        for _ in range(fresh):
            factories.delivery(subscription=of)
        for _ in range(due):
            at = timezone.now() - timedelta(seconds=60)
            factories.delivery(subscription=of, skipped=True, attempts=1, next_attempt_at=at)

    def read(self, owner: Subscriber, most: int, **fields: Any) -> list[dict[str, Any]]:
        return read(LaneKind.TOPIC, lane=owner.lane.pk, rows=most, most=most, **fields)

    def test_the_limit_holds_over_all_subscriptions(self, owner: Subscriber) -> None:
        for _ in range(3):
            self.waiting(factories.subscription(subscriber=owner), fresh=10, due=10)
        assert [len(self.read(owner, most)) for most in (1, 5, 20)] == [1, 5, 20]

    def test_due_and_new_deliveries_alternate(self, owner: Subscriber) -> None:
        of = factories.subscription(subscriber=owner)
        self.waiting(of, fresh=10, due=10)
        assert Counter(row["skipped"] for row in self.read(owner, 6)) == {True: 3, False: 3}

    def test_each_subscription_has_its_turn(self, owner: Subscriber) -> None:
        many, few = (factories.subscription(subscriber=owner) for _ in range(2))
        self.waiting(many, fresh=20)
        self.waiting(few, fresh=2)
        found = Counter(row["subscription_id"] for row in self.read(owner, 4))
        assert found == {many.pk: 2, few.pk: 2}

    def test_a_limit_of_one_starves_neither(self, owner: Subscriber) -> None:
        self.waiting(factories.subscription(subscriber=owner), fresh=1, due=1)
        found = {row["id"] for _ in range(64) for row in self.read(owner, 1)}
        assert len(found) == 2

    def test_due_deliveries_do_not_use_up_the_bytes(self, owner: Subscriber) -> None:
        self.waiting(factories.subscription(subscriber=owner), fresh=5, due=5)
        size = len(b'{"number": 1}')
        assert {row["skipped"] for row in self.read(owner, 10, bytes=2 * size)} == {True, False}
