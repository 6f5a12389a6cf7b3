"""A hold meets publishing, a run, another hold, and the releasing chore."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.models import Delivery, JournalEntry
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.senders.read_connection import ReadConnection
from delivery.states import Status
from delivery.support import releases, toggle
from delivery.support.toggle import Release
from subscriptions.models import Subscriber, Subscription
from tests.races.transactions import meet, unfinished
from tests.support import factories
from tests.unit.delivery.senders.test_read_connection import ids, read

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def subscription(transactional_db: None) -> Subscription:
    return factories.subscription()


def publishing(subscription: Subscription) -> Callable[[], object]:
    publisher = factories.publisher()
    draft = Draft(event_type=subscription.event_type, headers={}, body=b"{}")
    return lambda: publish(publisher, [draft])


def is_active(subscription: Subscription) -> bool:
    """Return the status read again by a sender before sending."""

    async def reading() -> bool:
        reader = ReadConnection(name="inturn reader test")
        try:
            (endpoint,) = await reader.endpoints([subscription.pk])
            return endpoint.is_active
        finally:
            await reader.close()

    return asyncio.run(reading())


def test_what_is_published_while_it_becomes_held_is_stored_and_waits(
    subscription: Subscription,
) -> None:
    with unfinished(publishing(subscription)):
        toggle.hold_owner(subscription.subscriber, actor="ann")
    with unfinished(lambda: toggle.hold_owner(subscription, actor="ann")):
        publishing(subscription)()
    rows = list(Delivery.objects.order_by("id"))
    assert [row.status for row in rows] == [Status.PENDING] * 2
    assert read(subscription.subscriber.lane.pk) == []
    toggle.activate_owner(subscription, actor="ann")
    toggle.activate_owner(subscription.subscriber, actor="ann")
    assert ids(read(subscription.subscriber.lane.pk)) == [row.pk for row in rows]


def test_what_was_read_before_the_hold_is_not_sent_after_it(subscription: Subscription) -> None:
    row = factories.delivery(subscription=subscription)
    with unfinished(lambda: toggle.hold_owner(subscription.subscriber, actor="ann")):
        assert ids(read(row.lane_id or 0)) == [row.pk]
        assert is_active(subscription)
    assert not is_active(subscription)


def test_of_two_who_hold_at_once_one_has_held(subscription: Subscription) -> None:
    owner = subscription.subscriber
    assert (
        meet(
            lambda: toggle.hold_owner(owner, actor="ann"),
            lambda: toggle.hold_owner(owner, actor="bob"),
        )
        is None
    )
    assert [row.actor for row in JournalEntry.objects.all()] == ["ann"]


def test_who_releases_and_who_holds_at_once_come_one_after_the_other(
    subscription: Subscription,
) -> None:
    owner = subscription.subscriber
    toggle.hold_owner(owner, actor="ann")
    assert (
        meet(
            lambda: toggle.activate_owner(owner, actor="ann"),
            lambda: toggle.hold_owner(owner, actor="bob"),
        )
        is None
    )
    assert Subscriber.objects.get().status == "HELD"
    assert [row.kind for row in JournalEntry.objects.order_by("id")] == [
        "HELD",
        "ACTIVATED",
        "HELD",
    ]


class TestReleaseDuty:
    @pytest.fixture
    def due(self, subscription: Subscription) -> Subscriber:
        """Create a subscriber whose hold is over."""
        toggle.hold_owner(
            subscription.subscriber, actor="ann", release=Release(until=timezone.now())
        )
        return subscription.subscriber

    def test_a_hold_that_a_person_prolongs_meanwhile_stays(self, due: Subscriber) -> None:
        later = Release(until=timezone.now() + timedelta(hours=1))
        with (
            unfinished(lambda: toggle.hold_owner(due, actor="bob", release=later)),
            transaction.atomic(),
        ):
            assert releases.release_due() == 0
        with transaction.atomic():
            assert releases.release_due() == 0
        assert Subscriber.objects.get().status == "HELD"

    def test_one_that_is_killed_before_its_commit_has_released_nothing(
        self, due: Subscriber
    ) -> None:
        with transaction.atomic():
            assert releases.release_due() == 1
            transaction.set_rollback(True)
        assert Subscriber.objects.get().status == "HELD"
        with transaction.atomic():
            assert releases.release_due() == 1
        assert Subscriber.objects.get().status == "ACTIVE"
        assert due.pk
